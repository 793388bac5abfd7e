//! Detects whether anything in some folders changed, without listing them again.
//!
//! On Linux, the kernel queues an event (inotify) before the call that made the change returns, so
//! a request sees every change made before it. All watches of a process share one queue, because a
//! user can have only about a hundred, and it stays open: to close one takes milliseconds. Where
//! nothing can be watched (another system, a network file system, a system limit), everything
//! counts as changed. Writes through a memory-mapped file cause no event.

use std::path::Path;

#[cfg(target_os = "linux")]
pub use linux::Watch;
#[cfg(not(target_os = "linux"))]
pub use other::Watch;

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
        descriptors: Vec<WatchDescriptor>,
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

    use super::Watch;

    /// The tests share the queue of the process, so only one may run at a time.
    fn alone() -> MutexGuard<'static, ()> {
        static RUNNING: Mutex<()> = Mutex::new(());
        RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
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
