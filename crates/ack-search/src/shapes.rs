//! The shape of a word: which letters it has, how long it is and how it begins. In a list of all
//! words, the shapes alone rule out most of those that do not resemble a given word. Of an
//! identifier, the shape has its parts in place of its beginning.

use super::dictionary::hash;

/// Longer words count as this long.
const MAX_CHARS: u32 = 63;
/// A shape has one bit for each letter, and the length above them.
const LETTERS: u32 = 26;
const LETTER_MASK: u32 = (1 << LETTERS) - 1;
/// The first of the bytes of a beginning.
const FIRST_BYTE: u32 = 0xff;
/// The first byte of an identifier.
const IDENTIFIER: u32 = b'=' as u32;
/// The number of different parts of identifiers.
const PARTS: u32 = 24;
const BLOCK: usize = 32;
/// The letters and the beginning of a word.
pub const SHAPE_BYTES: usize = 2 * size_of::<u32>();

#[derive(Debug, Default)]
pub struct Shapes {
    letters: Vec<u32>,
    /// The first bytes of each word.
    beginnings: Vec<u32>,
}

/// The shapes to look for. What is wanted always has one of them; others may have one too.
#[derive(Debug, Clone, Copy)]
pub struct ShapePattern {
    /// The letters of the word or identifier, its length, and its first bytes or its parts.
    letters: u32,
    length: u32,
    beginning: u32,
    wanted: Wanted,
}

#[derive(Debug, Clone, Copy)]
enum Wanted {
    /// Words that begin like the word, whatever their other letters.
    SameBeginning,
    /// Similar words. A beginning of the word may be shorter by `cut_off`.
    Similar { cut_off: u32, or_same_beginning: bool },
    /// Identifiers that contain the identifier.
    Containing,
}

impl ShapePattern {
    fn of(word: &str, beginning: u32, wanted: Wanted) -> Self {
        let length = capped(word.chars().count());
        Self { letters: letters(word), length, beginning, wanted }
    }

    /// Words with the first four bytes of `word`.
    pub fn same_beginning(word: &str) -> Self {
        Self::of(word, beginning(word), Wanted::SameBeginning)
    }

    /// Words that contain `word`, that differ from it by one letter, or that differ by one letter
    /// other than the first from a beginning of it that is up to `cut_off` characters shorter; also
    /// words with the first four bytes of it, if `or_same_beginning`.
    pub fn similar(word: &str, cut_off: usize, or_same_beginning: bool) -> Self {
        let cut_off = capped(cut_off);
        Self::of(word, beginning(word), Wanted::Similar { cut_off, or_same_beginning })
    }

    /// Identifiers that contain `identifier`, of whose parts only the first `whole` have to be whole.
    pub fn containing(identifier: &str, whole: usize) -> Self {
        Self::of(identifier, part_set(parts(identifier).take(whole)), Wanted::Containing)
    }

    /// Whether what has this shape may be wanted. Without branches on the shape, so that several
    /// shapes can be compared with one instruction.
    const fn matches(&self, shape: u32, beginning: u32) -> bool {
        let length = shape >> LETTERS;
        let contains = (self.letters & !shape == 0) & (length >= self.length);
        let is_word = beginning & FIRST_BYTE != IDENTIFIER;
        match self.wanted {
            Wanted::SameBeginning => is_word & (beginning == self.beginning),
            Wanted::Similar { cut_off, or_same_beginning } => {
                let foreign = shape & !self.letters & LETTER_MASK;
                let is_near =
                    (foreign & foreign.wrapping_sub(1) == 0) & (length <= self.length + 1);
                let is_as_long = length + 1 >= self.length;
                let begins_alike = (beginning ^ self.beginning) & FIRST_BYTE == 0;
                let is_cut_off = begins_alike & (length + cut_off >= self.length);
                let is_same = or_same_beginning & (beginning == self.beginning);
                is_word & ((is_near & (is_as_long | is_cut_off)) | contains | is_same)
            }
            Wanted::Containing => contains & (beginning & self.beginning == self.beginning),
        }
    }
}

impl Shapes {
    pub fn push(&mut self, word: &str) {
        let length = capped(word.chars().count());
        self.letters.push(letters(word) | (length << LETTERS));
        self.beginnings.push(beginning(word));
    }

    /// The numbers of the words that may be wanted, ascending.
    pub fn matching(&self, pattern: ShapePattern) -> impl Iterator<Item = usize> {
        let letters = self.letters.chunks(BLOCK);
        let blocks = letters.zip(self.beginnings.chunks(BLOCK)).enumerate();
        blocks.flat_map(move |(block, (letters, beginnings))| {
            let shapes = || letters.iter().zip(beginnings);
            let matches = move |shape: &u32, bytes: &u32| pattern.matches(*shape, *bytes);
            let any = shapes().fold(false, |any, (shape, bytes)| any | matches(shape, bytes));
            let shapes = any.then(shapes).into_iter().flatten().enumerate();
            shapes
                .filter(move |(_, (shape, bytes))| matches(shape, bytes))
                .map(move |(place, _)| block * BLOCK + place)
        })
    }
}

impl<'t> FromIterator<&'t str> for Shapes {
    fn from_iter<I: IntoIterator<Item = &'t str>>(words: I) -> Self {
        let mut shapes = Self::default();
        words.into_iter().for_each(|word| shapes.push(word));
        shapes
    }
}

fn capped(chars: usize) -> u32 {
    u32::try_from(chars).map_or(MAX_CHARS, |chars| chars.min(MAX_CHARS))
}

/// The set of a word's characters, folded into 26 bits: one for each letter from a to z.
fn letters(word: &str) -> u32 {
    word.chars().fold(0, |set, c| set | 1 << (u32::from(c) % LETTERS))
}

/// The parts of an identifier: what is between its punctuation, without the `v` of a version.
pub fn parts(identifier: &str) -> impl Iterator<Item = &str> + Clone {
    let parts = identifier.split(|c: char| !c.is_alphanumeric());
    let parts = parts.map(|part| match part.strip_prefix('v') {
        Some(version) if version.starts_with(|c: char| c.is_ascii_digit()) => version,
        _ => part,
    });
    parts.filter(|part| !part.is_empty())
}

/// The set of an identifier's parts, folded into the bits above the mark of an identifier.
fn part_set<'t>(parts: impl Iterator<Item = &'t str>) -> u32 {
    parts.fold(IDENTIFIER, |set, part| {
        let bit = hash(part) % u64::from(PARTS);
        set | 1 << (bit + 8)
    })
}

/// The first four bytes of a word, or the parts of an identifier.
fn beginning(word: &str) -> u32 {
    if word.starts_with('=') {
        return part_set(parts(word));
    }
    let mut bytes = [0; 4];
    for (slot, byte) in bytes.iter_mut().zip(word.bytes()) {
        *slot = byte;
    }
    u32::from_le_bytes(bytes)
}
