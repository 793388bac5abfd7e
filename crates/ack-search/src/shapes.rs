//! The shape of a word: which letters it has, how long it is and how it begins. In a list of all
//! words, the shapes alone rule out most of those that do not resemble a given word. Of an
//! identifier, the shape has its parts in place of its beginning.

use super::id_table::hash;

/// Longer words count as this long.
const MAX_CHARS: u32 = 63;
/// A shape has one bit for each letter, and the length above them.
const LETTERS: u32 = 26;
const LETTER_MASK: u32 = (1 << LETTERS) - 1;
/// The first of the bytes of a beginning.
const FIRST_BYTE: u32 = 0xff;
/// The number of different parts of identifiers.
const PARTS: u32 = 24;
/// How many shapes are compared at once.
const BLOCK: usize = 32;

/// The shapes of numbered words.
#[derive(Debug, Default)]
pub struct Shapes {
    /// The letters and the length of each word.
    letters: Vec<u32>,
    /// The first bytes of each word.
    beginnings: Vec<u32>,
}

/// The shapes to look for. A word that is wanted always has one of them; others may have one too.
#[derive(Debug, Clone, Copy)]
pub struct ShapePattern {
    /// The letters of the word, its length and its first bytes.
    letters: u32,
    length: u32,
    beginning: u32,
    /// How much shorter a beginning of the word may be; `None` if letters do not matter.
    cut_off: Option<u32>,
    /// Whether words that begin like the word are wanted, whatever their other letters.
    is_beginning_wanted: bool,
    /// The parts that an identifier has to contain; `None` if identifiers do not matter.
    parts: Option<u32>,
}

impl ShapePattern {
    /// Words with the first four bytes of `word`.
    pub fn same_beginning(word: &str) -> Self {
        Self {
            cut_off: None,
            is_beginning_wanted: true,
            ..Self::similar(word, 0)
        }
    }

    /// Words that contain `word`, that differ from it by one letter, or that differ by one letter
    /// other than the first from a beginning of it that is up to `cut_off` characters shorter.
    pub fn similar(word: &str, cut_off: usize) -> Self {
        Self {
            letters: letters(word),
            length: capped(word.chars().count()),
            beginning: beginning(word),
            cut_off: Some(capped(cut_off)),
            is_beginning_wanted: false,
            parts: None,
        }
    }

    /// Identifiers that contain `identifier`, of whose parts only the first `whole` have to be
    /// whole.
    pub fn containing(identifier: &str, whole: usize) -> Self {
        Self {
            cut_off: None,
            parts: Some(part_set(parts(identifier).take(whole))),
            ..Self::similar(identifier, 0)
        }
    }

    /// The same, and words with the first four bytes of the word.
    #[must_use]
    pub const fn or_same_beginning(self) -> Self {
        Self {
            is_beginning_wanted: true,
            ..self
        }
    }

    /// Whether a word with this shape may be wanted. Without branches on the shape, so that several
    /// shapes can be compared with one instruction.
    const fn matches(&self, shape: u32, first_bytes: u32) -> bool {
        let is_similar = match self.cut_off {
            Some(cut_off) => {
                let length = shape >> LETTERS;
                let foreign = shape & !self.letters & LETTER_MASK;
                let is_near =
                    (foreign & foreign.wrapping_sub(1) == 0) & (length <= self.length + 1);
                let is_as_long = length + 1 >= self.length;
                let begins_alike = (first_bytes ^ self.beginning) & FIRST_BYTE == 0;
                let is_cut_off = begins_alike & (length + cut_off >= self.length);
                let contains = (self.letters & !shape == 0) & (length >= self.length);
                (is_near & (is_as_long | is_cut_off)) | contains
            }
            None => false,
        };
        let contains_parts = match self.parts {
            Some(parts) => {
                (first_bytes & parts == parts)
                    & (self.letters & !shape == 0)
                    & (shape >> LETTERS >= self.length)
            }
            None => false,
        };
        is_similar | contains_parts | (self.is_beginning_wanted & (first_bytes == self.beginning))
    }
}

impl Shapes {
    /// Adds the shape of the next word.
    pub fn push(&mut self, word: &str) {
        let length = capped(word.chars().count());
        self.letters.push(letters(word) | (length << LETTERS));
        self.beginnings.push(beginning(word));
    }

    /// The bytes of memory it takes.
    pub const fn bytes(&self) -> usize {
        (self.letters.capacity() + self.beginnings.capacity()) * size_of::<u32>()
    }

    /// The numbers of the words that may be wanted, ascending.
    pub fn matching(&self, pattern: ShapePattern) -> impl Iterator<Item = usize> {
        let blocks = self.letters.chunks(BLOCK);
        let blocks = blocks.zip(self.beginnings.chunks(BLOCK)).enumerate();
        let matches = move |(shape, bytes): (&u32, &u32)| pattern.matches(*shape, *bytes);
        blocks.flat_map(move |(block, (letters, beginnings))| {
            let shapes = || letters.iter().zip(beginnings);
            let any = shapes().fold(false, |any, shape| any | matches(shape));
            let shapes = any.then(shapes).into_iter().flatten().enumerate();
            shapes
                .filter(move |(_, shape)| matches(*shape))
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

/// A length that fits into a shape.
fn capped(chars: usize) -> u32 {
    u32::try_from(chars).map_or(MAX_CHARS, |chars| chars.min(MAX_CHARS))
}

/// The set of a word's characters, folded into 26 bits: one for each letter from a to z.
fn letters(word: &str) -> u32 {
    word.chars()
        .fold(0, |set, c| set | 1 << (u32::from(c) % LETTERS))
}

/// The parts of an identifier: what is between its punctuation, without the `v` of a version.
pub fn parts(identifier: &str) -> impl Iterator<Item = &str> {
    let parts = identifier.split(|c: char| !c.is_alphanumeric());
    let parts = parts.map(|part| match part.strip_prefix('v') {
        Some(version) if version.starts_with(|c: char| c.is_ascii_digit()) => version,
        _ => part,
    });
    parts.filter(|part| !part.is_empty())
}

/// The set of an identifier's parts, folded into the bits above the mark of an identifier.
fn part_set<'t>(parts: impl Iterator<Item = &'t str>) -> u32 {
    parts.fold(u32::from(b'='), |set, part| {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pattern: ShapePattern, expected: &[&str]) {
        let words = [
            "cache",
            "caches",
            "ache",
            "cashing",
            "cachet",
            "vacances",
            "unreached",
            "cac",
            "aac",
        ];
        // More than one block.
        let all = words.iter().chain(&["xyz"; 40]).chain(&words);
        let shapes: Shapes = all.copied().collect();
        let found: Vec<usize> = shapes.matching(pattern).collect();
        let places = |first: usize| {
            let is_expected = |place: &usize| expected.contains(&words[*place]);
            let places = (0..words.len()).filter(is_expected);
            places.map(move |place| first + place)
        };
        let expected: Vec<usize> = places(0).chain(places(words.len() + 40)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn identifiers_are_chosen_by_their_parts() {
        let shapes: Shapes = [
            "=10.0.0.12:8443",
            "=10.0.0.7",
            "=node@v18.2.0",
            "10",
            "=ab-c1d",
        ]
        .into_iter()
        .collect();
        let found = |identifier: &str, whole: usize| -> Vec<usize> {
            let pattern = ShapePattern::containing(identifier, whole);
            shapes.matching(pattern).collect()
        };
        assert_eq!(found("=10.0.0.12", 4), [0]);
        assert_eq!(found("=18.2", 2), [2]);
        assert_eq!(found("=ab-c1", 1), [4]);
        assert!(found("=ab-c1", 2).is_empty());
    }

    #[test]
    fn words_are_chosen_by_their_letters_their_beginning_and_their_length() {
        check(
            ShapePattern::similar("cache", 1),
            &["cache", "caches", "ache", "cachet", "unreached"],
        );
        check(
            ShapePattern::similar("cache", 2),
            &["cache", "caches", "ache", "cachet", "unreached", "cac"],
        );
        check(
            ShapePattern::similar("cashew", 0).or_same_beginning(),
            &["cache", "caches", "cashing", "cachet"],
        );
        check(
            ShapePattern::same_beginning("cachet"),
            &["cache", "caches", "cachet"],
        );
    }
}
