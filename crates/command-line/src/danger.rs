//! Detects commands that destroy a system or give control of it away, in any spelling.

use crate::directory::Directories;
use crate::glob::name_matches;
use crate::location::{Location, Root};
use crate::options::is_bundle;
use crate::tables;
use crate::word::Word;

/// Returns the reason why a command is dangerous, if it is. `base` is the program's name.
pub(crate) fn check(base: &str, words: &[Word], dirs: &Directories<'_>) -> Option<String> {
    let args = words.get(1..).unwrap_or_default();
    if base.starts_with("mkfs") || tables::FORMATTERS.contains(&base) {
        let asks = any(args, &["--help", "--version", "-V"]);
        let shows = base == "wipefs" && !args.iter().any(|word| word.starts_with("-"));
        return (!asks && !shows).then(|| format!("'{base}' destroys what is on a device"));
    }
    if tables::STOPPERS.contains(&base) {
        let cancels = any(args, &["-c", "--help", "--version", "--show"]);
        return (!cancels).then(|| format!("'{base}' stops the machine"));
    }
    match base {
        "rm" | "shred" | "srm" | "unlink" | "rmdir" => removal(base, args, dirs),
        "chmod" | "chown" | "chgrp" | "chattr" | "setfacl" => permissions(base, args, dirs),
        "mv" => moved(args, dirs),
        "dd" | "dcfldd" | "dc3dd" => args.iter().find_map(|word| {
            let target = word.strip_prefix("of=")?;
            written(&target, dirs)
        }),
        _ => trees(base, args, dirs).or_else(|| machine(base, args)),
    }
}

/// Whether one of `texts` is among the words.
fn any(args: &[Word], texts: &[&str]) -> bool {
    args.iter().any(|word| word.is_any(texts))
}

fn moved(args: &[Word], dirs: &Directories<'_>) -> Option<String> {
    // The last operand is the target, unless an option names it. It is not moved away.
    let target = has_flag(args, &['t'], "--target-directory")
        || args.iter().any(|word| word.starts_with("--t"));
    let sources = operands(args).count().saturating_sub(usize::from(!target));
    let taken = operands(args).enumerate().find_map(|(at, word)| {
        if at < sources {
            covers_others(word, dirs).then(|| format!("'mv' takes '{}' away", word.shown()))
        } else {
            covers_machine(word, dirs).then(|| format!("'mv' replaces '{}'", word.shown()))
        }
    });
    taken.or_else(|| {
        let null = operands(args).last()?.is("/dev/null") && args.len() > 1;
        null.then(|| "'mv' replaces '/dev/null'".to_owned())
    })
}

/// Checks programs that overwrite or remove whole trees.
fn trees(base: &str, args: &[Word], dirs: &Directories<'_>) -> Option<String> {
    let begins = |start: &str| args.iter().any(|word| word.starts_with(start));
    match base {
        "rsync" | "cp" | "gcp" => {
            let rsync = base == "rsync";
            let name = if rsync { "rsync" } else { "cp" };
            let letters: &[char] = if rsync { &['r', 'a'] } else { &['r', 'R', 'a'] };
            let target = operands(args).last()?;
            if rsync && begins("--del") && covers_system(target, dirs) {
                return Some(format!("'rsync' empties '{}'", target.shown()));
            }
            let whole = has_flag(args, letters, "--recursive");
            let whole = whole || has_flag(args, &[], "--archive");
            (whole && is_root(target, dirs)).then(|| format!("'{name}' copies over the system"))
        }
        "cpio" => {
            let passes = has_flag(args, &['p'], "--pass-through");
            let root = operands(args).any(|word| is_root(word, dirs));
            (passes && root).then(|| "'cpio' copies over the system".to_owned())
        }
        "tar" | "gtar" | "zip" | "btrfs" | "fsfreeze" => {
            let (acts, effect) = match base {
                "zip" => (has_flag(args, &['m'], "--move"), "removes"),
                "btrfs" => (any(args, &["delete", "del"]), "deletes"),
                "fsfreeze" => (has_flag(args, &['f'], "--freeze"), "stops all writing to"),
                _ => (begins("--remove"), "removes"),
            };
            let taken = operands(args).find(|word| covers_others(word, dirs));
            let taken = taken.filter(|_| acts)?;
            Some(format!("'{base}' {effect} '{}'", taken.shown()))
        }
        _ => None,
    }
}

/// Checks programs that stop the machine, or change its disks and users.
fn machine(base: &str, args: &[Word]) -> Option<String> {
    match base {
        "init" | "telinit" => {
            let stops = any(args, &["0", "6", "1", "s", "S"]);
            stops.then(|| format!("'{base}' stops the machine"))
        }
        "systemctl" | "loginctl" => {
            let verb = operands(args)
                .filter_map(Word::literal)
                .find(|text| tables::STOPPING_VERBS.contains(&text.trim_end_matches(".target")))?;
            Some(format!("'{base} {verb}' stops the machine"))
        }
        "crontab" => {
            let removes = |text: &str| is_bundle(text) && text.contains('r');
            let removes = args.iter().filter_map(Word::literal).any(removes);
            removes.then(|| "'crontab -r' removes every job".to_owned())
        }
        "diskutil" | "zpool" | "zfs" | "mdadm" | "cryptsetup" | "nvme" | "hdparm" | "dmsetup" => {
            let verb = args
                .iter()
                .find(|word| word.is_any(tables::ERASING_VERBS))?;
            let verb = verb.shown();
            Some(format!("'{base} {verb}' destroys what is on a device"))
        }
        "fuser" => {
            let kills = has_flag(args, &['k'], "--kill");
            let root = operands(args).any(|word| word.is_any(&["/", "/."]));
            (kills && root).then(|| "'fuser -k' ends every process".to_owned())
        }
        "nc" | "ncat" | "netcat" | "socat" => hands_over(base, args),
        "dpkg" | "dpkg-deb" => {
            const UNPACKS: &[&str] =
                &["-x", "-X", "-R", "--extract", "--vextract", "--raw-extract"];
            let root = args.last()?.is_any(&["/", "/."]);
            (root && any(args, UNPACKS)).then(|| format!("'{base}' unpacks into '/'"))
        }
        "7z" | "7za" | "7zr" | "7zz" => {
            any(args, &["-o/", "-o/."]).then(|| format!("'{base}' unpacks into '/'"))
        }
        "userdel" | "deluser" => operands(args)
            .any(|word| word.is("root"))
            .then(|| "it removes the user root".to_owned()),
        _ if tables::PARTITIONERS.contains(&base) => {
            let shows = any(args, tables::LIST_ONLY_OPTIONS);
            let named = operands(args).next().is_some();
            (named && !shows).then(|| format!("'{base}' changes partitions"))
        }
        _ => processes_and_users(base, args),
    }
}

/// Checks programs that end processes, stop the machine, or open it to others.
fn processes_and_users(base: &str, args: &[Word]) -> Option<String> {
    match base {
        "kill" => {
            let after_first = args.get(usize::from(args.len() > 1)..).unwrap_or_default();
            if any(after_first, &["-1"]) {
                return Some("'kill -1' ends every process".to_owned());
            }
            // `kill -0 1` only tests for the process. In `kill -l 1` and
            // `kill -s 1 42`, 1 is a signal.
            let asks = any(args, &["-0", "-l", "-L", "-t"]);
            let first = (0..args.len()).any(|at| {
                let before = at.checked_sub(1).and_then(|at| args.get(at));
                args.get(at).is_some_and(|word| word.is("1"))
                    && !before.is_some_and(|word| word.is_any(&["-s", "-n", "-q"]))
            });
            (first && !asks).then(|| "'kill 1' ends the process that all others hang on".to_owned())
        }
        "rtcwake" => {
            const STAYS: &[&str] = &["no", "on", "show", "disable"];
            let mode = value_of(args, "-m", "--mode").unwrap_or_else(|| "suspend".to_owned());
            let asks = has_flag(args, &['h', 'V', 'n'], "--dry-run");
            (!asks && !STAYS.contains(&mode.as_str()))
                .then(|| "'rtcwake' stops the machine".to_owned())
        }
        "ctrlaltdel" => operands(args)
            .any(|word| word.is("hard"))
            .then(|| "'ctrlaltdel hard' stops the machine without a shutdown".to_owned()),
        "passwd" => {
            let opens = has_flag(args, &['d', 'l'], "--delete") || has_flag(args, &[], "--lock");
            let root = operands(args).any(|word| word.is("root"));
            (opens && root).then(|| "it takes the password of root away".to_owned())
        }
        "useradd" | "usermod" | "adduser" => {
            let id = value_of(args, "-u", "--uid");
            let root = id.is_some_and(|id| !id.is_empty() && id.bytes().all(|b| b == b'0'));
            root.then(|| format!("'{base}' makes a second root"))
        }
        "umount" => has_flag(args, &['a'], "--all")
            .then(|| "'umount -a' takes every file system away".to_owned()),
        _ => None,
    }
}

/// Checks programs that connect a shell to the network.
fn hands_over(base: &str, args: &[Word]) -> Option<String> {
    let runs = |word: &Word| {
        let text = word.shown();
        match base {
            "socat" => {
                let text = text.to_ascii_lowercase();
                text.starts_with("exec:") || text.starts_with("system:")
            }
            _ if text.starts_with("--") => {
                let long = ["--exec", "--sh-exec", "--lua-exec"];
                long.iter().any(|known| text.starts_with(known))
            }
            _ => text.starts_with('-') && text.contains(['e', 'c']),
        }
    };
    let runs = args.iter().any(runs);
    runs.then(|| format!("'{base}' hands a program to whoever connects"))
}

/// Returns the words that are not options.
pub(crate) fn operands(args: &[Word]) -> impl Iterator<Item = &Word> {
    operands_at(args).map(|(_, word)| word)
}

/// Returns the words that are not options, with their indexes.
pub(crate) fn operands_at(args: &[Word]) -> impl Iterator<Item = (usize, &Word)> {
    let end = args.iter().position(|word| word.is("--"));
    let is_operand = move |(at, word): &(usize, &Word)| {
        let after = end.is_some_and(|end| *at > end);
        after || !word.starts_with("-") || word.is("-")
    };
    args.iter().enumerate().filter(is_operand)
}

/// Returns the value of an option, in any spelling.
fn value_of(args: &[Word], short: &str, long: &str) -> Option<String> {
    let letter = short.trim_start_matches('-');
    for (at, word) in args.iter().enumerate() {
        let text = word.literal().unwrap_or_default();
        let next = || Some(args.get(at + 1)?.shown());
        if let Some(rest) = text.strip_prefix("--") {
            let (name, value) = rest
                .split_once('=')
                .map_or((rest, None), |(n, v)| (n, Some(v)));
            let known = long.trim_start_matches('-');
            if name.len() > 1 && known.starts_with(name) {
                return value.map(str::to_owned).or_else(next);
            }
        } else if let Some((_, value)) = text
            .strip_prefix('-')
            .and_then(|flags| flags.split_once(letter))
        {
            return if value.is_empty() {
                next()
            } else {
                Some(value.to_owned())
            };
        }
    }
    None
}

/// Whether a short or a long option is among the words.
pub(crate) fn has_flag(args: &[Word], letters: &[char], long: &str) -> bool {
    args.iter().take_while(|word| !word.is("--")).any(|word| {
        let text = word.literal().unwrap_or_default();
        if text.starts_with("--") {
            text.len() > 2 && long.starts_with(text)
        } else {
            text.starts_with('-') && text.contains(letters)
        }
    })
}

fn removal(base: &str, args: &[Word], dirs: &Directories<'_>) -> Option<String> {
    let spares_nothing = |text: &str| text.len() > 6 && "--no-preserve-root".starts_with(text);
    if args.iter().filter_map(Word::literal).any(spares_nothing) {
        return Some(format!("'{base}' is told not to spare the root"));
    }
    let recursive = has_flag(args, &['r', 'R'], "--recursive");
    operands(args).find_map(|word| {
        if let Some(text) = written(word, dirs) {
            return Some(text);
        }
        // Even without -r a glob removes every file in a directory, such as a home.
        let counts = recursive || word.is_glob() && base != "rmdir";
        (counts && covers_system(word, dirs))
            .then(|| format!("'{base}' removes '{}'", word.shown()))
    })
}

fn permissions(base: &str, args: &[Word], dirs: &Directories<'_>) -> Option<String> {
    let recursive = has_flag(args, &['R'], "--recursive");
    operands(args).find_map(|word| {
        let is_system =
            |at: &Location| at.root == Root::System && (at.names.is_empty() || is_known_tree(at));
        let bad = if recursive {
            covers_others(word, dirs)
        } else {
            any_location(word, dirs, is_system)
        };
        bad.then(|| format!("'{base}' changes who may use '{}'", word.shown()))
    })
}

/// Whether `location` could be exactly one of the trees in the tables.
fn is_known_tree(location: &Location) -> bool {
    let is = |tree: &&str| could_begin(location, tree) == Some(location.names.len());
    tables::TREES.iter().chain(tables::DEEP_TREES).any(is)
}

/// Whether `location` could be `tree`, or something in it.
fn is_within(location: &Location, tree: &str) -> bool {
    could_begin(location, tree).is_some_and(|names| names <= location.names.len())
}

/// Returns the number of names in `tree`, if `location` could match as far as both go.
fn could_begin(location: &Location, tree: &str) -> Option<usize> {
    let mut count = 0;
    for known in tree.split('/').skip(1) {
        if let Some(name) = location.names.get(count)
            && !name.could_be(known)
        {
            return None;
        }
        count += 1;
    }
    Some(count)
}

/// Whether a location that `word` may name fits.
fn any_location(word: &Word, dirs: &Directories<'_>, fits: impl Fn(&Location) -> bool) -> bool {
    dirs.locations(word)
        .is_some_and(|locations| locations.iter().any(fits))
}

/// Whether destroying the files that `word` names would destroy a system or a home.
pub(crate) fn covers_system(word: &Word, dirs: &Directories<'_>) -> bool {
    any_location(word, dirs, location_covers_system)
}

/// Like [`covers_system`], but not for `~`, nor for a root of the backend.
pub(crate) fn covers_machine(word: &Word, dirs: &Directories<'_>) -> bool {
    any_location(word, dirs, |at| {
        at.root == Root::System && location_covers_system(at)
    })
}

/// Like [`covers_system`], but not for the root of the backend.
pub(crate) fn covers_others(word: &Word, dirs: &Directories<'_>) -> bool {
    any_location(word, dirs, |at| {
        at.root != Root::Given && location_covers_system(at)
    })
}

/// Whether `word` may name the root of the system.
pub(crate) fn is_root(word: &Word, dirs: &Directories<'_>) -> bool {
    any_location(word, dirs, |at| {
        at.root == Root::System && at.names.is_empty()
    })
}

/// Whether `word` names a device that holds a file system or memory.
pub(crate) fn names_device(word: &Word, dirs: &Directories<'_>) -> bool {
    any_location(word, dirs, |at| at.root == Root::System && is_device(at))
}

fn location_covers_system(location: &Location) -> bool {
    let everything = location
        .names
        .last()
        .is_some_and(|name| name.glob && name.text.chars().all(|c| "*?.[]!:".contains(c)));
    // All children of a directory count as the directory.
    let mut location = location.clone();
    if everything {
        location.names.pop();
        if location.names.is_empty() {
            return true;
        }
    }
    match location.root {
        Root::Home | Root::Given | Root::Tree(_) => location.names.is_empty(),
        Root::System => {
            let len = location.names.len();
            let beneath = |tree: &&str| is_within(&location, tree);
            len == 0
                || is_known_tree(&location)
                || tables::DEEP_TREES.iter().any(beneath)
                || len == 2 && tables::HOMES.iter().any(beneath)
        }
    }
}

/// Returns the reason why writing to `word` is dangerous, if it is.
pub(crate) fn written(word: &Word, dirs: &Directories<'_>) -> Option<String> {
    let critical = |at: &Location| {
        let within = |file: &&str| is_within(at, file);
        at.root == Root::System && tables::CRITICAL_FILES.iter().any(within)
    };
    let bad = any_location(word, dirs, |at| {
        at.root != Root::Home && (critical(at) || is_device(at))
    });
    bad.then(|| format!("it writes to '{}'", word.shown()))
}

fn is_device(location: &Location) -> bool {
    let Some((first, rest)) = location.names.split_first() else {
        return false;
    };
    if first.text != "dev" && !(first.glob && name_matches(&first.text, "dev")) || rest.is_empty() {
        return false;
    }
    let rest: Vec<&str> = rest.iter().map(|name| name.text.as_str()).collect();
    let name = rest.join("/");
    // Volumes: `/dev/group/volume`.
    if let [first, _] = rest.as_slice()
        && !tables::DEVICE_DIRS.contains(first)
        && !first.contains(['*', '?', '['])
    {
        return true;
    }
    let known = |prefix: &&str| match name.find(['*', '?', '[']) {
        None => name.starts_with(*prefix),
        // Of a glob, only the plain text at the start is compared.
        Some(end) => {
            let plain = name.get(..end).unwrap_or_default();
            plain.starts_with(*prefix) || prefix.starts_with(plain)
        }
    };
    tables::DEVICES.iter().any(known)
}

/// Whether a redirect to `word` opens a connection.
pub(crate) fn connects(word: &Word) -> bool {
    word.starts_with("/dev/tcp/") || word.starts_with("/dev/udp/")
}
