//! Tests of matching commands against patterns.

use super::*;

fn form(words: &[&str]) -> Form {
    let words: Vec<Word> = words
        .iter()
        .map(|word| match *word {
            "$" => Word::computed(),
            text => Word::text(text),
        })
        .collect();
    Form::new(&words)
}

fn could(pattern: &str, words: &[&str]) -> bool {
    Compiled::new(pattern).unwrap().could_be(&form(words))
}

fn all(pattern: &str, words: &[&str]) -> bool {
    Compiled::new(pattern).unwrap().is_all_of(&form(words))
}

#[test]
fn stars_cross_words_and_slashes() {
    assert!(all("git *", &["git", "log", "--", "a/b"]));
    assert!(all("git *", &["git"]));
    assert!(!all("git *", &["gitk"]));
    assert!(all("mkfs*", &["mkfs.ext4", "/dev/sda"]));
    assert!(all("mkfs*", &["mkfs"]));
    assert!(all("*", &["anything", "at", "all"]));
    assert!(all("npm run *:watch", &["npm", "run", "a:watch"]));
    assert!(all("l?", &["ls"]) && !all("l?", &["l"]) && !all("l? x", &["l", "x"]));
}

#[test]
fn words_stay_apart() {
    assert!(all("echo 'a b'", &["echo", "a b"]));
    assert!(!all("echo a b", &["echo", "a b"]));
    assert!(!all("echo 'a b'", &["echo", "a", "b"]));
    assert!(all("a \\* b", &["a", "*", "b"]) && !all("a \\* b", &["a", "x", "b"]));
    assert!(all("a '' b", &["a", "", "b"]));
}

#[test]
fn a_computed_word_is_denied_if_it_could_be_meant() {
    assert!(could("rm *", &["$", "-rf"]));
    assert!(could("rm -rf /", &["rm", "$", "/"]));
    assert!(could("rm -rf /", &["rm", "$"]));
    assert!(!could("rm *", &["ls", "$"]));
    assert!(could("git push *", &["git", "$"]));
}

#[test]
fn a_computed_word_is_allowed_only_beneath_a_star() {
    assert!(all("wc *", &["wc", "-l", "$"]));
    assert!(!all("git status", &["git", "$"]));
    assert!(!all("git *", &["$", "status"]));
    assert!(!all("git log ?", &["git", "log", "$"]));
}

#[test]
fn denials_see_through_spellings() {
    for words in [
        &["rm", "-rf", "x"][..],
        &["/bin/rm", "-rf", "x"],
        &["./rm", "-fr", "x"],
        &["rm", "-r", "-f", "x"],
        &["rm", "--recursive", "--force", "x"],
        &["rm", "x", "-Rf"],
        &["rm", "-v", "-rf", "--", "x"],
        &["RM", "-rf", "x"],
    ] {
        assert!(could("rm -rf *", words), "{words:?}");
    }
    assert!(!could("rm -rf *", &["rm", "-r", "x"]));
    assert!(!all("git *", &["/tmp/git", "status"]));
    assert!(!all("git *", &["GIT", "status"]));
}

#[test]
fn malformed_patterns_are_none() {
    assert!(Compiled::new("a 'b").is_none());
    assert!(Compiled::new("a \\").is_none());
}
