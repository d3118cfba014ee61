//! The table of all cases: group, name, requirements, and the rule that each one
//! checks.
//!
//! One table generates the registry [`CASES`] and the tests that
//! [`conformance!`](crate::conformance) expands to. The references in it are: `D`, the
//! contract in the documentation of [`Backend`](backend_core::Backend) and
//! [`Sandbox`](backend_core::Sandbox); `U`, a difference between the backends of
//! pydantic-ai-backend or a defect of theirs (`U0` its divergence table, `U9` its own
//! change log, `U12` defects found by running it, `UA` the workspace contract of its
//! later versions); `S`, a published security hole of such a system.

use crate::case::Case;
use crate::fixture::Need;

/// Calls `$callback!` with `$arguments` and the table of all cases.
#[doc(hidden)]
#[macro_export]
macro_rules! __for_each_case {
    ($callback:path, { $($arguments:tt)* }) => {
        $crate::__with_filesystem_cases! {
            $callback
            { $($arguments)* }
            path {
                every_spelling_of_the_working_directory [Write] "D paths: root spellings; U9.1; U9.2",
                relative_starts_at_the_working_directory [Write] "D paths: relative; U9.12; U0 ls path field",
                spellings_fold [Write] "D paths: folding",
                climbing_above_the_root_is_invalid [] "D paths: above the root; S path traversal",
                hopeless_spellings_are_invalid [Write] "D paths: NUL, home, drive; U12.10",
                nothing_is_expanded [Write] "D paths: nothing expanded; U9.72",
                leading_dashes [Write] "S argument injection through names; U12.1",
                blanks_and_line_ends [Write] "U0 ls rows; U9.6; S newline in names",
                blanks_in_directories [Write] "U9.6; U12.18: parents with blanks",
                special_characters [Write] "U0 symlink row in ls; S colon in names",
                unicode_names [Write] "D paths: UTF-8, no normalising",
                case_matters [Write] "D paths: byte by byte",
                siblings_that_begin_alike [Write] "U9.9; S prefix siblings (CVE-2025-53110)",
                longest_name [Write] "D paths: name limit; U9.144",
                too_long_a_path_is_invalid [] "D paths: path limit",
                too_deep_a_path_is_invalid [Write] "D paths: depth limit; S nesting that exhausts the stack",
                deep_path [Write] "D paths: depth",
                temporary_names_are_reserved [] "D writing: reserved prefix",
            }
            exists {
                file_exists [Write] "D exists; U9.22; U9.144",
                directory_exists [Write] "D exists: directories too; D is_file; D is_dir",
                missing_does_not [Write] "D exists: missing is false",
                invalid_does_not [] "D exists: invalid is false; U9.144; U12.10",
            }
            stat {
                file [Write] "D stat",
                size_counts_bytes [Write] "U9.33: sizes are exact bytes",
                directory [Write] "U0 ls dir size; D stat: directories",
                missing [Write] "D stat: NotFound, NotADirectory",
                time_advances [Write, Times] "D stat: time of last change",
            }
            resolve {
                plain_path_is_itself [Write] "D resolve",
                missing_end_is_kept [Write] "D resolve: missing end; UA realpath",
                beneath_a_file [Write] "D resolve: NotADirectory",
                link_leads_to_its_target [Write, Links] "D resolve; UA realpath follows links",
                links_in_a_circle [Links] "D resolve: circle; U12.10; UA symlink loop",
                refused_link_is_told [Write, Links] "D links: Refuse is IsALink",
            }
            ls {
                directories_first_then_bytes [Write] "D ls: order",
                one_level_only [Write] "D ls: one level",
                file_lists_itself [Write] "D ls: a file lists itself; U0 ls on a file",
                missing_is_not_found [] "D ls: NotFound; U9.17; U12.28",
                beneath_a_file [Write] "D: beneath a file",
                empty_directory [Write] "D ls: empty success; U12.28",
                sizes_are_of_files [Write] "U0 ls dir size",
                times_are_of_files [Write, Times] "U0 ls modified_at",
                times_are_real [Write, SetTime] "U0 ls modified_at: never invented",
                paths_are_absolute [Write] "U0 ls path field; U9.6",
                everything_is_shown [Write] "D ls: hidden and ignored shown",
                vanishing_entries_break_nothing [Write] "D ls: entries that vanish; U9.7; U9.8",
                limit_gives_the_head [Write] "D limits: the result says when it was cut",
                zero_limit_is_invalid [] "D ls: limit of zero",
                exclude_comes_before_the_limit [Write] "D exclude before any limit",
                exclude_hides_what_is_inside [Write] "D exclude: inside a hidden directory; U12.7",
                links_are_marked [Write, Links] "D ls: links; U0 symlink row in ls",
                fifo_is_listed [Fifo] "D read: never waits; UA FIFO; S FIFO hangs",
                raw_names_are_counted [Write, RawName] "D paths: not UTF-8 is counted",
            }
            read {
                bytes_are_exact [Write] "D read: exactly the bytes; U9.20",
                large_file_round_trips [Write] "UA: 8 MiB round trip",
                empty_file [Write] "D read: empty file; U0 read empty file; U9.22",
                missing_is_not_found [] "D read: NotFound; U0 missing file; U9.21",
                directory_is_an_error [Write] "D read: IsADirectory; U0 read a directory",
                beneath_a_file_is_not_a_directory [Write] "D: beneath a file; UA file as parent",
                range_gives_its_bytes [Write] "D read: range; U9.28",
                range_is_cut_at_the_end [Write] "D read: range past the end is cut",
                range_past_the_end_is_invalid [Write] "D read: InvalidInput names the size",
                turned_range_is_invalid [Write] "D read: turned range",
                too_much_is_an_error [Write] "D read: TooLarge, never a prefix; U9.20",
                exactly_the_maximum_is_read [Write] "U12.16: a file exactly at the limit",
            }
            read_text {
                lines_have_numbers_beside_them [Write] "U0 read line prefix; D read_text",
                numbers_are_real [Write] "D read_text: real numbers; U9.18",
                trailing_newline_is_no_line [Write] "U0 final newline counts as extra line",
                last_line_without_newline [Write] "D read_text",
                blank_lines_count [Write] "D read_text",
                empty_file [Write] "U0 read empty file; U12.16",
                offset_past_the_end_names_the_length [Write] "U0 offset past the end",
                greatest_offset [Write] "D read_text: any offset; U9.39",
                greatest_limit [Write] "D read_text: any limit",
                crlf_is_a_line_end [Write] "U0 CRLF in read",
                lone_cr_is_content [Write] "U0 CRLF in read: universal newlines",
                other_separators_are_content [Write] "U0 CRLF in read: splitlines",
                limit_ends_the_window [Write] "U0 more-lines trailer",
                exactly_the_limit_has_no_more [Write] "U0 more-lines trailer",
                default_limit [Write] "D read_text: 2000 lines",
                zero_limit_is_invalid [Write] "D read_text: limit of zero",
                total_is_counted_when_asked [Write] "D read_text: total",
                long_line_is_cut [Write] "U0 long-line truncation in read; U9.147",
                max_bytes_end_the_window [Write] "D limits; U9.147",
                binary_is_not_text [Write] "U0 binary file via read; U9.35; U9.143",
                nul_in_text_is_shown [Write] "D read_text: NotText needs not-UTF-8",
                invalid_utf8_is_replaced [Write] "D read_text: U+FFFD; U9.27",
                utf8_mark_is_not_content [Write] "D read_text: byte-order mark",
                utf16_is_text [Write] "D read_text: UTF-16",
                missing_and_directory [Write] "U0 missing file; U0 read a directory",
                deep_window [Write] "D read_text: bounded memory; U9.28",
            }
            write {
                creates_parents [Write] "D write: missing parents; UA writes create parents; U12.18",
                overwrites [Write] "D write: the bytes written are the bytes read back",
                create_new_creates [Write] "D WriteMode: CreateNew",
                create_new_conflicts [Write] "D write: AlreadyExists as the mode says; the file is what it was",
                create_new_on_a_directory [Write] "D WriteMode: CreateNew only if nothing stands at the path",
                create_new_has_one_winner [Write] "D write: the mode holds against other writers",
                if_unchanged_applies [Write] "D WriteMode: IfUnchanged",
                if_unchanged_conflicts [Write] "D write: Conflict as the mode says; U9.32",
                if_unchanged_on_a_missing_file [Write] "D WriteMode: Conflict, also when the file is gone",
                if_unchanged_has_one_winner [Write] "D write: the mode holds against other writers; U9.31",
                to_a_directory [Write] "D write: IsADirectory; UA write to a directory",
                to_the_working_directory [Write] "D write: IsADirectory",
                beneath_a_file [Write] "D write: NotADirectory; UA file as parent",
                carriage_returns_are_kept [Write] "D write: exact bytes; U0 write with CR; U9.24; U12.18",
                special_characters_are_verbatim [Write] "D write: exact bytes; U9.19",
                names_are_verbatim [Write] "D: paths are not expanded; U9.6; U12.18: parents with spaces",
                nothing_is_appended [Write] "D write: exact bytes; U9.20: an extra newline",
                empty_content_makes_an_empty_file [Write] "D read: empty file; U9.22",
                invalid_utf8_is_kept [Write] "D write: exact bytes; U9.20; U9.33",
                stream_is_written [Write] "D Content: pieces in order",
                failing_stream_keeps_the_old_file [Write] "D Content: an error in the stream; D write: after an error",
                failing_stream_creates_nothing [Write] "D Content: an error in the stream; D ls: files being written",
                dropped_write_has_not_happened [Write] "D: a cancelled change has happened wholly or not at all",
                outcome_tells_what_happened [Write] "D WriteOutcome; U9.33: a size one byte short",
                concurrent_writes_never_mix [Write] "D write: the old file or the new one, never a mixture",
                large_file [Write] "UA: 8 MiB round trip; U12.18: payloads over 128 KiB",
                siblings_are_untouched [Write] "D write: one file; D ls: files being written are not shown",
            }
            edit {
                replaces_the_one_place [Write] "D edit: exactly once; everything else keeps its bytes",
                missing_text_names_the_nearest_line [Write] "D edit: NoMatch names the nearest candidates and their lines",
                ambiguous_is_refused [Write] "D edit: MultipleMatches names how often it occurs and where",
                overlapping_is_ambiguous [Write] "D edit: exactly once",
                replace_all_replaces_all [Write] "D edit: unless the edit says all",
                empty_old_is_invalid [Write] "D edit: InvalidInput if the text is empty",
                same_text_is_invalid [Write] "D edit: InvalidInput if it would not change",
                no_edits_is_invalid [Write] "D edit: InvalidInput if it would not change",
                missing_file [Write] "D edit: NotFound",
                directory [Write] "D edit: IsADirectory",
                beneath_a_file [Write] "D: beneath a file; UA file as parent",
                crlf_is_kept [Write] "D edit: line ends; U0 edit on CRLF file; U12.18",
                newline_means_crlf_in_a_crlf_file [Write] "D edit: \\n means \\r\\n if all line ends are",
                mixed_line_ends_are_kept [Write] "D edit: line ends; only if all of them are \\r\\n",
                not_utf8_is_refused [Write] "D edit: NotText; U0 edit on non-UTF-8; U9.30; U9.35; U12.19",
                byte_order_mark_is_kept [Write] "D edit: byte-order mark",
                missing_final_newline_is_kept [Write] "D edit: final newline",
                several_edits_apply_in_order [Write] "D edit: each applies to the result of the one before",
                several_edits_all_or_none [Write] "D edit: all edits or none",
                expected_hash_must_hold [Write] "D edit: Conflict if expected does not hold; U9.32",
                empty_file_has_nothing_to_replace [Write] "D edit: NoMatch; U9.22; U12.16: empty file uneditable",
                concurrent_edits_lose_nothing [Write] "D edit: both apply or one gets Conflict; U9.31",
                special_characters_are_literal [Write] "D edit: exact text; U9.25",
                multi_line_text [Write] "D edit: exact text; U9.25",
                text_with_nul_can_be_edited [Write] "D edit: NotText only if it is not UTF-8",
                outcome_tells_what_happened [Write] "D EditOutcome",
                empty_new_deletes [Write] "D edit: exact replacement",
                carriage_return_only_change [Write] "D edit: exact replacement; U0 edit on CRLF file",
            }
            create_dir {
                creates_parents [Write] "D create_dir: and those above it",
                exists_already_is_fine [Write] "D create_dir: exists; UA mkdir -p is idempotent",
                over_a_file [Write] "D create_dir: AlreadyExists; UA mkdir over a file",
                beneath_a_file [Write] "D create_dir: NotADirectory; UA file as parent",
                empty_directory_is_listed [Write] "D create_dir; D ls: empty directory; U12.28",
                stays_when_its_last_entry_goes [Write] "D create_dir: directories stay",
                written_parents_stay [Write] "D create_dir: directories stay",
                race_is_fine [Write] "D create_dir: a directory that exists is a success",
            }
            delete {
                file_goes [Write] "D delete: a file",
                missing [Write] "D delete: NotFound",
                directory_needs_recursive [Write] "D delete: IsADirectory, empty or not",
                recursive_takes_everything [Write] "D delete: a directory and all it holds",
                working_directory_is_refused [Write] "D delete: InvalidInput; UA remove refuses the working directory",
                beneath_a_file [Write] "D: beneath a file; UA file as parent",
                siblings_with_the_same_beginning_stay [Write] "D delete; U9.9: a name that begins alike",
                deleted_path_can_be_written_again [Write] "D delete: nothing is left at the path",
            }
            rename {
                file_moves [Write] "D rename: moves a file",
                creates_parents [Write] "D rename: parents of the destination",
                never_overwrites [Write] "D rename: AlreadyExists",
                overwrites_when_told [Write] "D rename: a file replaces a file",
                directory_moves_with_content [Write] "D rename: moves a directory",
                onto_itself [Write] "D rename: InvalidInput onto itself",
                into_itself [Write] "D rename: InvalidInput into itself",
                missing_source [Write] "D rename: NotFound",
                over_a_directory [Write] "D rename: a directory is never replaced or merged",
                directory_over_a_file [Write] "D rename: a file replaces a file, nothing else does",
                beneath_a_file [Write] "D rename: NotADirectory; UA file as parent",
                working_directory_is_refused [Write] "D rename: InvalidInput for the working directory",
                empty_directory_moves [Write] "D rename: moves a directory",
                to_a_name_that_begins_alike [Write] "D rename; U9.9: a name that begins alike",
                race_has_one_winner [Write] "D rename: AlreadyExists, even if others move at the same time",
                nothing_inside_loses_its_path [Write] "D rename: InvalidPath; S nesting that exhausts the stack",
            }
            copy {
                file_is_copied [Write] "D copy: a file",
                creates_parents [Write] "D copy: parents of the destination",
                never_overwrites [Write] "D copy: AlreadyExists",
                overwrites_when_told [Write] "D copy: as rename, a file replaces a file",
                directory_needs_recursive [Write] "D copy: IsADirectory without recursive",
                directory_is_copied_whole [Write] "D copy: a directory and all it holds",
                onto_itself [Write] "D copy: as rename, InvalidInput onto itself",
                into_itself [Write] "D copy: as rename, InvalidInput into itself",
                missing_source [Write] "D copy: as rename, NotFound",
                over_a_directory [Write] "D copy: as rename, a directory is never replaced or merged",
                directory_over_a_file [Write] "D copy: as rename, a file replaces a file, nothing else does",
                beneath_a_file [Write] "D copy: as rename, NotADirectory; UA file as parent",
                empty_file_is_copied [Write] "D copy: a file; U9.22",
                large_file [Write] "D copy: whole or not at all; UA: 8 MiB round trip",
                race_has_one_winner [Write] "D copy: as rename, AlreadyExists, even if others copy at the same time",
                nothing_inside_loses_its_path [Write] "D copy: InvalidPath; S nesting that exhausts the stack",
            }
            glob {
                star_stays_in_one_component [Write] "D glob: `*` does not cross `/`; U0 glob `*` crosses `/`",
                pattern_without_slash_matches_at_any_depth [Write] "D glob: without `/` at any depth; U0 glob `*.py` depth; U9.5",
                pattern_with_slash_is_anchored [Write] "D glob: with `/` from the start; U9.4",
                double_star_matches_any_depth [Write] "D glob: `**`, none included; U9.3",
                question_mark_is_one_character [Write] "D glob: `?`",
                class_and_range [Write] "D glob: `[a-z]`",
                negated_class [Write] "D glob: `[!a]`, never `/`",
                braces [Write] "D glob: `{a,b}`; U0 glob brace; U12.20",
                braces_with_slashes [Write] "D glob: `{a,b}` across `/`; U12.20",
                escaped_metacharacters [Write] "D glob: every name can be asked for",
                sorted_by_bytes [Write] "D glob: byte order of the path; U0 glob ordering",
                newest_first [Write, SetTime] "D glob: newest first; U0 glob ordering",
                newest_first_ties_by_path [Write, SetTime] "D glob: newest first, then by path",
                newest_first_limit [Write, SetTime] "D glob: head of the complete, ordered result",
                limit_gives_the_head [Write] "D glob: head of the complete, ordered result; U9.7",
                exactly_the_limit_is_not_truncated [Write] "D glob: truncated only if there is more",
                zero_limit_is_invalid [] "D glob: InvalidInput for a limit of zero",
                empty_pattern_is_invalid [] "D glob: InvalidInput for a bad pattern; U12.10",
                bad_pattern_is_invalid [] "D glob: InvalidInput for a bad pattern; U12.10",
                parent_component_is_invalid [] "D glob: InvalidInput for a bad pattern",
                trailing_slash_is_invalid [] "D glob: InvalidInput for a bad pattern",
                nul_in_pattern_is_invalid [] "D glob: InvalidInput for a bad pattern; U12.10",
                absolute_pattern [Write] "D glob: absolute pattern; U12.10",
                absolute_pattern_outside_is_invalid [Write] "D glob: absolute pattern elsewhere; U9.2",
                files_only [Write] "D glob: regular files only",
                no_match_is_empty_success [Write] "D glob: nothing found is a success",
                missing_path [] "D glob: NotFound; U9.16; U9.17",
                path_is_a_file [Write] "D glob: NotADirectory",
                path_narrows_the_search [Write] "D glob: relative to the path; U9.2; U9.9",
                hidden_left_out [Write] "D glob: hidden left out; U0 glob hides dotfiles",
                hidden_on_request [Write] "D glob: hidden on request; U0 glob hides dotfiles",
                hidden_when_named [Write] "D glob: hidden when named",
                hidden_start_directory_is_searched [Write] "D glob: a named directory is searched; U12.12; U12.14",
                git_only_when_named [Write] "D glob: `.git` only when named",
                gitignore_is_honoured [Write] "D glob: `.gitignore`, also outside a repository; U9.148",
                ignored_on_request [Write] "D glob: ignored on request",
                ignore_beats_gitignore [Write] "D glob: `.ignore` beats `.gitignore`",
                deeper_beats_shallower [Write] "D glob: deeper beats shallower",
                negation_brings_back [Write] "D glob: a later `!name`",
                nothing_comes_back_inside_an_ignored_directory [Write] "D glob: nothing inside an ignored directory",
                negation_does_not_unhide [Write] "D glob: `!name` does not un-hide",
                rules_above_the_start_apply [Write] "D glob: ignore files from the root down",
                anchored_rules [Write] "D glob: `/name` at its level",
                directory_only_rules [Write] "D glob: `name/` for directories",
                start_inside_ignored_directory_is_searched [Write] "D glob: the start is not subject to rules; U12.14",
                generated_left_out_and_counted [Write] "D glob: generated directories left out and counted; U9.148",
                generated_on_request [Write] "D glob: generated directories on request",
                generated_when_named [Write] "D glob: generated directories when named",
                generated_start_directory_is_searched [Write] "D glob: a named directory is searched; U12.14",
                ignore_files_overrule_generated [Write] "D glob: generated directories only without ignore rules",
                exclude_comes_before_the_limit [Write] "D glob: exclude before the limit, uncounted",
                exclude_hides_what_is_inside [Write] "D glob: exclude hides what is inside; U12.7",
                pattern_with_leading_dash [Write] "S a glob `-delete` emptied the workspace",
                shell_characters_are_only_text [Write] "S a search handed to a shell; U9.5; U9.72",
                names_with_special_characters [Write] "D glob: paths can be handed back; U9.5; U9.6; S a newline in a name",
                sizes_are_reported [Write] "D glob: sizes; U0 glob size/mtime",
                times_are_reported [Write, Times] "D glob: times; U0 glob size/mtime",
                case_matters [Write] "D glob: upper and lower case differ",
                skipped_is_counted [Write] "D glob: what was passed over is counted",
            }
            grep {
                finds_lines [Write] "D grep: path, number, line; U9.11; U9.14; U12.12; U0 grep with ignore_hidden",
                rust_dialect [Write] "D grep: dialect; U0 grep dialect; U12.20",
                bad_pattern_points_at_the_spot [Write] "D grep: InvalidInput points at the spot; U0 invalid regex; U9.10; U12.13",
                pattern_stands_alone [Write] "D grep: dialect",
                file_anchors_need_multi_line [Write] "D grep: dialect, line by line",
                no_match_is_empty_success [Write] "D grep: nothing found is a success",
                missing_path [] "D grep: NotFound; U9.16; U9.17",
                single_file [Write] "D grep: a named file is searched; U0 grep single file; U9.15",
                named_hidden_file_is_searched [Write] "D grep: a named file is always searched; U9.13",
                named_ignored_file_is_searched [Write] "D grep: a named file is always searched; U9.13",
                hidden_start_directory_is_searched [Write] "D grep: a named directory is searched; U12.12; U12.14",
                filter_matches_at_any_depth [Write] "D grep: file filter as in glob; U0 grep glob filter",
                filter_with_braces [Write] "D grep: file filter as in glob; U0 grep glob filter; U12.20",
                filter_with_slash_is_anchored [Write] "D grep: file filter as in glob; U0 grep glob filter",
                bad_filter_is_invalid [Write] "D grep: InvalidInput for a bad file filter",
                hidden_left_out_and_counted [Write] "D grep: hidden left out and counted; U9.14",
                hidden_on_request [Write] "D grep: hidden on request, `.git` only when named",
                gitignore_is_honoured [Write] "D grep: `.gitignore`, counted; U9.148",
                generated_left_out_and_counted [Write] "D grep: generated directories left out and counted; U9.148",
                generated_on_request [Write] "D grep: generated directories on request",
                generated_when_named [Write] "D grep: a named directory is searched; U12.14",
                binary_is_passed_over_and_counted [Write] "D grep: a NUL in the first 8 KiB",
                late_nul_is_text [Write] "D grep: only the first 8 KiB decide",
                utf16_is_searched [Write] "D grep: a UTF-16 mark is no binary",
                byte_order_mark_is_no_content [Write] "D grep: byte-order marks are understood",
                invalid_utf8_is_searched [Write] "D grep: not UTF-8 shows as U+FFFD; U12.10",
                literal_is_literal [Write] "D grep: literal",
                case_insensitive [Write] "D grep: case",
                smart_case [Write] "D grep: case",
                context_lines [Write] "D grep: context",
                too_much_context_is_invalid [Write] "D grep: InvalidInput for too much context",
                multi_line_spans [Write] "D grep: multi-line",
                line_end_in_pattern_needs_multi_line [Write] "D grep: multi-line only on request",
                maximum_gives_the_head [Write] "D grep: head of the complete result",
                maximum_cuts_inside_a_file [Write] "D grep: head of the complete result",
                exactly_the_maximum_is_not_truncated [Write] "D grep: truncated only if there is more; U12.16",
                maximum_keeps_trailing_context [Write] "D grep: head of the complete result, with context",
                zero_maximum_is_invalid [Write] "D grep: InvalidInput for a maximum of zero",
                ordered_by_path_then_line [Write] "D grep: byte order of the path, lines in order",
                crlf_end_is_not_content [Write] "D grep: `\\r\\n` is a line end; U0 CRLF in read",
                dot_does_not_match_line_ends [Write] "D grep: `\\r\\n` is a line end",
                long_line_is_cut [Write] "D grep: a long line is cut and says by how much",
                names_with_special_characters [Write] "D grep: paths can be handed back; S `:` and newlines in names",
                pattern_with_leading_dash [Write] "S a pattern `--pre=sh` ran a program; U9.72; U12.1",
                shell_characters_are_only_text [Write] "S a pattern that closed its quote; U9.72",
                exclude_hides_content [Write] "D grep: exclude hides content, uncounted; U12.7",
                exclude_comes_before_the_maximum [Write] "D grep: exclude before the maximum",
                empty_file_matches_nothing [Write] "D grep: an empty file has no line",
                empty_pattern_matches_every_line [Write] "D grep: an empty pattern",
                last_line_without_newline [Write] "D grep: the last line is a line",
                nested_quantifiers_end_soon [Write] "D grep: dialect; S patterns that never end",
                too_large_pattern_is_invalid [Write] "D grep: InvalidInput for a bad pattern",
                max_bytes_bounds_the_result [Write] "D grep: bounded by bytes, and says so",
                matches_are_counted [Write] "D grep: counts matching lines",
            }
            contract {
                working_directory_is_there [] "D working_dir",
                errors_have_context [Write] "D errors: operation, path, backend",
                beneath_a_file_is_one_kind [Write] "D: one kind for one mistake; UA file as parent",
                handles_share_one_place [Write] "D: clones share one place",
                many_calls_at_once [Write] "D: concurrency",
                dropped_calls_harm_nothing [Write] "D: dropping cancels; UA cancellation",
                every_view_agrees [Write] "U9.16; D: one place",
                sandbox_is_there_if_promised [] "D as_sandbox, capabilities: commands",
            }
        }
    };
}

macro_rules! registry {
    ({} $($group:ident { $($name:ident [$($need:ident),*] $source:literal,)* })*) => {
        /// Every case, in the order of the table.
        pub static CASES: &[Case] = &[$($(
            Case {
                group: stringify!($group),
                name: stringify!($name),
                needs: &[$(Need::$need),*],
                source: $source,
                run: |env| Box::pin(crate::cases::$group::$name(env)),
            },
        )*)*];
    };
}

__for_each_case!(registry, {});

/// Generates one test per case of the suite, and one that fixes the number of skipped
/// cases.
///
/// ```
/// use std::sync::Arc;
/// use backend_core::Backend;
/// use backend_state::StateBackend;
/// use backend_testkit::Fixture;
///
/// struct Memory;
///
/// impl Fixture for Memory {
///     fn backend(&self) -> Arc<dyn Backend> {
///         Arc::new(StateBackend::new())
///     }
/// }
///
/// backend_testkit::conformance! {
///     mod memory;
///     fixture = async || Memory;
///     skipped = 174;
/// }
/// # fn main() {}
/// ```
///
/// A failure reads `memory::write::create_new_conflicts`. A case whose requirements the
/// fixture does not meet prints `skipped: needs …`. Several modules can follow each other.
#[macro_export]
macro_rules! conformance {
    ($(mod $module:ident; fixture = $fixture:expr; skipped = $skipped:expr;)+) => {
        $(mod $module {
            #[allow(unused_imports, reason = "the fixture may need nothing from outside")]
            use super::*;

            // Once for all cases: compiling hundreds of copies took minutes.
            fn __test(group: &str, name: &str) {
                $crate::test_case(group, name, $fixture);
            }

            $crate::__for_each_case!($crate::__conformance_tests, {});

            #[test]
            fn skipped_cases_are_pinned() {
                $crate::test_skipped($skipped, $fixture);
            }
        })+
    };
}

/// Expands the table to test modules.
#[doc(hidden)]
#[macro_export]
macro_rules! __conformance_tests {
    ({} $($group:ident { $($name:ident [$($need:ident),*] $source:literal,)* })*) => {
        $(
            mod $group {
                $(
                    #[test]
                    fn $name() {
                        super::__test(stringify!($group), stringify!($name));
                    }
                )*
            }
        )*
    };
}
