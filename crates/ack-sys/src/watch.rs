//! Detects whether anything in some folders changed, without listing them again.
//!
//! On Linux, the kernel queues an event (inotify) before the call that made the change returns, so
//! a request sees every change made before it. All watches of a process share one queue, because a
//! user can have only about a hundred, and it stays open: to close one takes milliseconds. Where
//! nothing can be watched (another system, a network file system, a system limit), everything
//! counts as changed. Writes through a memory-mapped file cause no event.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

#[cfg(target_os = "linux")]
pub use linux::Watch;
#[cfg(not(target_os = "linux"))]
pub use other::Watch;

/// A folder counts as changed after this time, because some writes make no event: those through a
/// memory map, and those through a hard link in another folder.
const MAX_UNVERIFIED: Duration = Duration::from_secs(5);
/// How long to wait before trying again to watch a folder that could not be watched.
const RETRY_AFTER: Duration = Duration::from_secs(30);

/// One folder whose changes are counted, so that what was read from it can be reused as long as the
/// count stays the same.
#[derive(Debug)]
pub struct FolderWatch {
    folder: PathBuf,
    state: Mutex<WatchState>,
}

#[derive(Debug, Default)]
struct WatchState {
    is_begun: bool,
    watch: Option<Watch>,
    failed: Option<Instant>,
    generation: u64,
    counted: Option<Instant>,
}

impl FolderWatch {
    /// A folder. It is not watched before [`Self::begin`].
    pub fn new(folder: PathBuf) -> Self {
        Self { folder, state: Mutex::default() }
    }

    /// Watches the folder from now on. For a process that looks only once, that costs more than it
    /// saves: when it ends, it waits for the kernel.
    pub fn begin(&self) {
        self.state().is_begun = true;
    }

    fn state(&self) -> MutexGuard<'_, WatchState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts as changed, for instance because the path may name another folder now.
    pub fn forget(&self) {
        self.state().watch = None;
    }

    /// A number that stays the same as long as nothing in the folder changes, not counting its
    /// subfolders. `None` if it is not watched, or cannot be.
    pub fn generation(&self) -> Option<u64> {
        let mut state = self.state();
        let has_failed = state.failed.is_some_and(|failed| failed.elapsed() < RETRY_AFTER);
        if !state.is_begun || has_failed {
            return None;
        }
        if state.watch.as_ref().is_none_or(Watch::has_changed) {
            // The new watch begins before the old one ends.
            let mut watch = Watch::default();
            watch.add(&self.folder);
            if watch.has_changed() {
                // The system cannot watch the folder. A change at this very moment looks the same
                // but is rare.
                state.failed = Some(Instant::now());
                state.watch = None;
                return None;
            }
            state.watch = Some(watch);
        } else if state.counted.is_some_and(|counted| counted.elapsed() <= MAX_UNVERIFIED) {
            return Some(state.generation);
        }
        state.generation += 1;
        state.counted = Some(Instant::now());
        Some(state.generation)
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::HashMap;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

    use nix::errno::Errno;
    use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify, WatchDescriptor};

    use super::Path;
    use crate::disk::is_local;

    /// How many folders a process watches. All processes of a user share a limit of some ten
    /// thousand.
    const MAX_FOLDERS: usize = 4_000;

    #[derive(Debug, Default)]
    pub struct Watch {
        has_changed: Arc<AtomicBool>,
        pub(super) descriptors: Vec<WatchDescriptor>,
        is_incomplete: bool,
    }

    struct Queue {
        inotify: Inotify,
        /// The watches of each folder; two watches may share one.
        watched: HashMap<WatchDescriptor, Vec<Arc<AtomicBool>>>,
    }

    static QUEUE: Mutex<Option<Queue>> = Mutex::new(None);

    impl Watch {
        /// Adds a folder, without its subfolders. Changes from now on count.
        pub fn add(&mut self, folder: &Path) {
            if !self.is_incomplete && self.try_add(folder).is_none() {
                self.is_incomplete = true;
            }
        }

        /// Marks the watch as incomplete: from now on everything counts as changed.
        pub fn stop(&mut self) {
            self.is_incomplete = true;
        }

        /// Whether anything changed, or may have changed, since the folders were added. A watch
        /// without folders sees nothing, so it counts as changed.
        pub fn has_changed(&self) -> bool {
            if self.is_incomplete || self.descriptors.is_empty() {
                return true;
            }
            let mut queue = lock();
            let Some(queue) = queue.as_mut() else { return true };
            queue.read();
            self.has_changed.load(Ordering::Acquire)
        }

        fn try_add(&mut self, folder: &Path) -> Option<()> {
            if !is_local(folder) {
                return None;
            }
            let mut guard = lock();
            if guard.is_none() {
                let flags = InitFlags::IN_NONBLOCK | InitFlags::IN_CLOEXEC;
                *guard =
                    Some(Queue { inotify: Inotify::init(flags).ok()?, watched: HashMap::new() });
            }
            let queue = guard.as_mut().filter(|queue| queue.watched.len() < MAX_FOLDERS)?;
            let flags = AddWatchFlags::IN_MODIFY
                | AddWatchFlags::IN_ATTRIB
                | AddWatchFlags::IN_CREATE
                | AddWatchFlags::IN_DELETE
                | AddWatchFlags::IN_MOVE
                | AddWatchFlags::IN_DELETE_SELF
                | AddWatchFlags::IN_MOVE_SELF
                | AddWatchFlags::IN_ONLYDIR;
            let descriptor = queue.inotify.add_watch(folder, flags).ok()?;
            queue.watched.entry(descriptor).or_default().push(Arc::clone(&self.has_changed));
            self.descriptors.push(descriptor);
            Some(())
        }
    }

    impl Drop for Watch {
        fn drop(&mut self) {
            let mut guard = lock();
            let Some(queue) = guard.as_mut() else { return };
            for descriptor in &self.descriptors {
                let Some(watches) = queue.watched.get_mut(descriptor) else { continue };
                watches.retain(|watch| !Arc::ptr_eq(watch, &self.has_changed));
                if watches.is_empty() {
                    queue.watched.remove(descriptor);
                    // This fails if the folder, and the watch with it, is gone.
                    let _ = queue.inotify.rm_watch(*descriptor);
                }
            }
        }
    }

    impl Queue {
        fn read(&mut self) {
            loop {
                match self.inotify.read_events() {
                    Ok(events) => {
                        for event in events {
                            match self.watched.get(&event.wd) {
                                Some(watches) => mark_changed(watches),
                                None if event.mask.contains(AddWatchFlags::IN_Q_OVERFLOW) => {
                                    self.mark_all();
                                }
                                // The folder is no longer watched.
                                None => {}
                            }
                        }
                    }
                    Err(Errno::EINTR) => {}
                    Err(Errno::EAGAIN) => return,
                    Err(_) => return self.mark_all(),
                }
            }
        }

        fn mark_all(&self) {
            self.watched.values().for_each(|watches| mark_changed(watches));
        }
    }

    fn mark_changed(watches: &[Arc<AtomicBool>]) {
        for watch in watches {
            watch.store(true, Ordering::Release);
        }
    }

    fn lock() -> MutexGuard<'static, Option<Queue>> {
        QUEUE.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(not(target_os = "linux"))]
mod other {
    use super::Path;

    /// A stub for systems that cannot report changes in time.
    #[derive(Debug, Default)]
    pub struct Watch;

    impl Watch {
        pub fn add(&mut self, _folder: &Path) {}

        pub fn stop(&mut self) {}

        pub fn has_changed(&self) -> bool {
            true
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::fs;
    use std::sync::{Mutex, MutexGuard, PoisonError};

    use super::{FolderWatch, Watch};

    /// The tests share the queue of the process, so only one may run at a time.
    fn alone() -> MutexGuard<'static, ()> {
        static RUNNING: Mutex<()> = Mutex::new(());
        RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[test]
    fn a_generation_changes_with_every_change_of_the_folder_and_only_then() {
        let _alone = alone();
        let folder = tempfile::tempdir().unwrap();
        let watch = FolderWatch::new(folder.path().to_owned());
        assert_eq!(watch.generation(), None, "it is not watched yet");
        watch.begin();
        let mut last = watch.generation().unwrap();
        for text in ["a", "b"] {
            assert_eq!(watch.generation(), Some(last));
            fs::write(folder.path().join("note"), text).unwrap();
            let next = watch.generation().unwrap();
            assert!(next > last);
            last = next;
        }
        fs::remove_dir_all(folder.path()).unwrap();
        assert_eq!(watch.generation(), None, "it is gone");
    }

    /// A queue numbers its folders upwards from 1, so a number that does not rise is of a new queue.
    #[test]
    fn a_forgotten_folder_is_watched_again_in_the_same_queue() {
        let _alone = alone();
        let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let watch = FolderWatch::new(folder.path().to_owned());
        watch.begin();
        let watched = || {
            watch.generation().unwrap();
            let state = watch.state.lock().unwrap();
            state.watch.as_ref().unwrap().descriptors.clone()
        };
        let mut earlier = Watch::default();
        earlier.add(other.path());
        let mut last = watched();
        drop(earlier);
        for _ in 0..3 {
            watch.forget();
            let next = watched();
            assert!(next > last, "the queue was closed");
            last = next;
        }
    }

    #[test]
    fn every_change_is_noticed_at_once_and_nothing_else() {
        let _alone = alone();
        let folder = tempfile::tempdir().unwrap();
        let note = folder.path().join("note");
        let new = folder.path().join("new");
        fs::write(&note, "a").unwrap();
        let changes: [(&str, &dyn Fn()); 6] = [
            ("written", &|| fs::write(&note, "b").unwrap()),
            ("made", &|| fs::write(&new, "").unwrap()),
            ("renamed", &|| fs::rename(&new, &note).unwrap()),
            ("a folder", &|| fs::create_dir(&new).unwrap()),
            ("metadata", &|| {
                fs::File::open(&note).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
            }),
            ("removed", &|| fs::remove_file(&note).unwrap()),
        ];
        for (name, change) in changes {
            let mut watch = Watch::default();
            let mut second = Watch::default();
            watch.add(folder.path());
            second.add(folder.path());
            let _ = fs::read(&note);
            assert!(!watch.has_changed(), "{name}: before");
            change();
            assert!(watch.has_changed(), "{name}: after");
            assert!(watch.has_changed(), "{name}: it stays changed");
            drop(watch);
            assert!(second.has_changed(), "{name}: the other watch");
        }
    }

    #[test]
    fn an_unwatchable_folder_counts_as_changed() {
        let _alone = alone();
        let mut watch = Watch::default();
        watch.add(std::path::Path::new("/proc/self"));
        assert!(watch.has_changed());
        let mut watch = Watch::default();
        watch.stop();
        assert!(watch.has_changed());
        assert!(Watch::default().has_changed(), "nothing is watched");
    }
}
