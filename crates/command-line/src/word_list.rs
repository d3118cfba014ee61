//! Lists of words, written as text and split when they are compiled.

/// Returns the words of a text, which are separated by white space, as a slice.
macro_rules! words {
    ($text:literal) => {{
        const WORDS: [&str; $crate::word_list::count($text)] = $crate::word_list::split($text);
        &WORDS
    }};
}

pub(crate) use words;

/// Returns the number of words.
pub(crate) const fn count(text: &str) -> usize {
    let bytes = text.as_bytes();
    let (mut at, mut words) = (0, 0);
    while at < bytes.len() {
        let begins = at == 0 || bytes[at - 1].is_ascii_whitespace();
        if begins && !bytes[at].is_ascii_whitespace() {
            words += 1;
        }
        at += 1;
    }
    words
}

/// Returns the words of a text that has `N` of them.
pub(crate) const fn split<const N: usize>(text: &'static str) -> [&'static str; N] {
    let mut words = [""; N];
    let (mut word, mut rest) = (0, text.trim_ascii());
    while word < N {
        let mut end = 0;
        while end < rest.len() && !rest.as_bytes()[end].is_ascii_whitespace() {
            end += 1;
        }
        let (first, others) = rest.split_at(end);
        words[word] = first;
        rest = others.trim_ascii_start();
        word += 1;
    }
    words
}

#[cfg(test)]
mod tests {
    #[test]
    fn words_are_what_stands_between_white_space() {
        let some: &[&str] = words!(
            " a --b=c  [
              \u{e9}. "
        );
        assert_eq!(some, ["a", "--b=c", "[", "\u{e9}."]);
        let none: &[&str] = words!(" \n");
        assert!(none.is_empty());
    }
}
