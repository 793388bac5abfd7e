//! Strings that are numbered in the order in which they come, one behind the other in memory: about a dozen bytes each besides
//! the text.

use super::numbers::{Numbers, hash};

/// Numbered strings.
#[derive(Debug, Default)]
pub struct Dictionary {
    text: String,
    /// Where each string ends.
    ends: Vec<u32>,
    numbers: Numbers,
}

impl Dictionary {
    /// How many there are.
    pub const fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The string of a number; the empty one where there is none.
    pub fn get(&self, number: u32) -> &str {
        get(&self.text, &self.ends, number)
    }

    /// The number of a string that is there.
    pub fn find(&self, text: &str) -> Option<u32> {
        self.numbers.find(hash(text), |number| self.get(number) == text)
    }

    /// The number of a string, a new one if need be. Past 4 GiB of text nothing new is taken in: such strings all get the
    /// number behind the last one, which stands for no string.
    pub fn number(&mut self, text: &str) -> u32 {
        let hash_of = hash(text);
        if let Some(number) = self.numbers.find(hash_of, |number| self.get(number) == text) {
            return number;
        }
        let number = u32::try_from(self.ends.len()).unwrap_or(u32::MAX);
        let Ok(end) = u32::try_from(self.text.len() + text.len()) else {
            return number;
        };
        self.text.push_str(text);
        self.ends.push(end);
        let Self { text, ends, numbers } = self;
        numbers.insert(hash_of, number, |other| Some(hash(get(text, ends, other))));
        number
    }

    /// The strings from a number on.
    pub fn from(&self, first: usize) -> impl Iterator<Item = &str> {
        (first..self.len()).map(|number| self.get(u32::try_from(number).unwrap_or(u32::MAX)))
    }

    /// Every string, in the order of the numbers.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.from(0)
    }

    /// How many bytes of memory it takes.
    pub fn bytes(&self) -> usize {
        self.text.capacity() + self.ends.capacity() * size_of::<u32>() + self.numbers.bytes()
    }

    /// Gives back memory that growth left over.
    pub fn shrink(&mut self) {
        self.text.shrink_to_fit();
        self.ends.shrink_to_fit();
    }
}

fn get<'a>(text: &'a str, ends: &[u32], number: u32) -> &'a str {
    let number = number as usize;
    let start = number
        .checked_sub(1)
        .and_then(|before| ends.get(before))
        .copied()
        .unwrap_or_default();
    let end = ends.get(number).copied().unwrap_or(start);
    text.get(start as usize..end as usize).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::Dictionary;

    #[test]
    fn strings_keep_their_numbers_as_the_dictionary_grows() {
        let mut dictionary = Dictionary::default();
        let words: Vec<String> = (0..5_000).map(|number: u32| format!("w{}é", number * 7)).collect();
        for (number, word) in words.iter().enumerate() {
            assert_eq!(dictionary.number(word) as usize, number);
        }
        for (number, word) in words.iter().enumerate() {
            assert_eq!(dictionary.find(word), u32::try_from(number).ok());
            assert_eq!(dictionary.number(word) as usize, number);
        }
        assert_eq!(dictionary.find("w"), None);
        assert_eq!(dictionary.find(""), None);
        assert_eq!(dictionary.number(""), 5_000);
        assert_eq!(dictionary.find(""), Some(5_000));
        assert!(dictionary.iter().take(5_000).eq(words.iter().map(String::as_str)));
        assert_eq!(dictionary.get(9_999), "");
    }
}
