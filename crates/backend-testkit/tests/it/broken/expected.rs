//! The cases that each defect fails: all of them, and no others.

use super::backend::Defect::{self, *};

/// Writes the table: a defect, and the names of the cases.
macro_rules! failures {
    ($($defect:ident $cases:literal;)+) => {
        [$(($defect, $cases)),+]
    };
}

/// The names of the cases by group, in the order of the table of cases.
pub(crate) const FAILURES: &[(Defect, &str)] = &failures! {
    NumbersInText
        "read_text: lines_have_numbers_beside_them numbers_are_real trailing_newline_is_no_line
             last_line_without_newline blank_lines_count greatest_limit crlf_is_a_line_end
             lone_cr_is_content other_separators_are_content long_line_is_cut
             max_bytes_end_the_window binary_is_not_text nul_in_text_is_shown
             invalid_utf8_is_replaced utf8_mark_is_not_content utf16_is_text deep_window";
    FinalNewlineIsALine
        "read_text: lines_have_numbers_beside_them numbers_are_real trailing_newline_is_no_line
             blank_lines_count offset_past_the_end_names_the_length greatest_offset
             greatest_limit crlf_is_a_line_end exactly_the_limit_has_no_more long_line_is_cut
             max_bytes_end_the_window nul_in_text_is_shown invalid_utf8_is_replaced
             utf8_mark_is_not_content utf16_is_text";
    EmptyFileIsAnError "read_text: empty_file offset_past_the_end_names_the_length";
    PastTheEndIsEmpty
        "read_text: offset_past_the_end_names_the_length greatest_offset zero_limit_is_invalid";
    TrailerInText "read_text: limit_ends_the_window max_bytes_end_the_window deep_window";
    MissingFileIsText "read_text: missing_and_directory";
    DirectoryReadsAsAFile "read: directory_is_an_error read_text: missing_and_directory";
    BinaryIsShown "read_text: binary_is_not_text nul_in_text_is_shown utf16_is_text";
    LongLinesAreNotCut "read_text: long_line_is_cut";
    UniversalNewlines "read_text: lone_cr_is_content binary_is_not_text utf16_is_text";
    WriteDropsCarriageReturns
        "path: blanks_and_line_ends
         stat: size_counts_bytes
         read: bytes_are_exact large_file_round_trips
         read_text: lone_cr_is_content utf16_is_text
         write: carriage_returns_are_kept stream_is_written large_file
         edit: crlf_is_kept newline_means_crlf_in_a_crlf_file mixed_line_ends_are_kept
             carriage_return_only_change
         copy: large_file
         grep: utf16_is_searched";
    EditConvertsLineEnds
        "edit: crlf_is_kept newline_means_crlf_in_a_crlf_file mixed_line_ends_are_kept
             carriage_return_only_change";
    EditTranscodes "edit: not_utf8_is_refused";
    ListingAFileIsEmpty "ls: file_lists_itself";
    DirectoriesHaveSizes "ls: sizes_are_of_files";
    DirectoriesHaveTimes "ls: times_are_of_files";
    ListedPathsLackTheirDirectory
        "path: nothing_is_expanded leading_dashes blanks_and_line_ends special_characters
             unicode_names longest_name
         ls: file_lists_itself paths_are_absolute";
    ArrowsCutListedNames "path: special_characters ls: file_lists_itself";
    StarCrossesSlashes "glob: star_stays_in_one_component absolute_pattern hidden_when_named";
    PlainPatternIsAnchored
        "path: deep_path
         glob: pattern_without_slash_matches_at_any_depth braces files_only hidden_when_named
             negation_brings_back
         contract: every_view_agrees";
    HiddenFilesAreFound
        "glob: hidden_left_out hidden_when_named hidden_start_directory_is_searched
             gitignore_is_honoured ignored_on_request ignore_beats_gitignore
             deeper_beats_shallower nothing_comes_back_inside_an_ignored_directory
             negation_does_not_unhide anchored_rules directory_only_rules
             generated_left_out_and_counted ignore_files_overrule_generated skipped_is_counted
         grep: hidden_start_directory_is_searched hidden_left_out_and_counted
             gitignore_is_honoured";
    NoBraces
        "glob: braces braces_with_slashes escaped_metacharacters bad_pattern_is_invalid
             parent_component_is_invalid hidden_left_out generated_when_named
             exclude_hides_what_is_inside";
    NewestFirstAlways
        "glob: star_stays_in_one_component pattern_without_slash_matches_at_any_depth
             double_star_matches_any_depth question_mark_is_one_character class_and_range
             negated_class braces braces_with_slashes escaped_metacharacters
             limit_gives_the_head absolute_pattern files_only path_narrows_the_search
             hidden_on_request hidden_when_named hidden_start_directory_is_searched
             git_only_when_named ignored_on_request deeper_beats_shallower negation_brings_back
             rules_above_the_start_apply anchored_rules
             start_inside_ignored_directory_is_searched generated_left_out_and_counted
             generated_on_request generated_when_named generated_start_directory_is_searched
             ignore_files_overrule_generated exclude_comes_before_the_limit
             pattern_with_leading_dash names_with_special_characters sizes_are_reported";
    FoundFilesHaveNoSize "glob: sizes_are_reported times_are_reported";
    BasicRegularExpressions
        "grep: rust_dialect bad_pattern_points_at_the_spot pattern_stands_alone
             literal_is_literal multi_line_spans crlf_end_is_not_content
             dot_does_not_match_line_ends shell_characters_are_only_text
             too_large_pattern_is_invalid";
    BadPatternFindsNothing
        "grep: bad_pattern_points_at_the_spot pattern_stands_alone file_anchors_need_multi_line
             bad_filter_is_invalid too_much_context_is_invalid
             line_end_in_pattern_needs_multi_line zero_maximum_is_invalid
             too_large_pattern_is_invalid";
    FilterIsAnchored "grep: filter_matches_at_any_depth filter_with_braces";
    SingleFileFindsNothing
        "grep: single_file named_hidden_file_is_searched named_ignored_file_is_searched
             generated_when_named names_with_special_characters";
    WorkingDirectoryFindsNothing
        "grep: finds_lines rust_dialect pattern_stands_alone file_anchors_need_multi_line
             filter_matches_at_any_depth filter_with_braces filter_with_slash_is_anchored
             hidden_left_out_and_counted hidden_on_request gitignore_is_honoured
             generated_left_out_and_counted generated_on_request generated_when_named
             binary_is_passed_over_and_counted late_nul_is_text utf16_is_searched
             byte_order_mark_is_no_content invalid_utf8_is_searched literal_is_literal
             case_insensitive smart_case context_lines too_much_context_is_invalid
             multi_line_spans maximum_gives_the_head maximum_cuts_inside_a_file
             exactly_the_maximum_is_not_truncated maximum_keeps_trailing_context
             ordered_by_path_then_line crlf_end_is_not_content dot_does_not_match_line_ends
             long_line_is_cut names_with_special_characters pattern_with_leading_dash
             shell_characters_are_only_text exclude_hides_content
             exclude_comes_before_the_maximum empty_pattern_matches_every_line
             last_line_without_newline max_bytes_bounds_the_result matches_are_counted
         contract: every_view_agrees";
    ParentsAreNotCreated
        "path: blanks_in_directories deep_path
         ls: one_level_only paths_are_absolute
         write: creates_parents if_unchanged_on_a_missing_file
         create_dir: written_parents_stay
         delete: recursive_takes_everything
         rename: into_itself over_a_directory nothing_inside_loses_its_path
         copy: into_itself over_a_directory nothing_inside_loses_its_path
         glob: pattern_without_slash_matches_at_any_depth pattern_with_slash_is_anchored
             braces_with_slashes limit_gives_the_head absolute_pattern path_narrows_the_search
             hidden_when_named git_only_when_named anchored_rules directory_only_rules
             generated_left_out_and_counted generated_on_request generated_when_named
             ignore_files_overrule_generated
         grep: filter_with_slash_is_anchored generated_left_out_and_counted
             generated_on_request generated_when_named";
    CreateNewOverwrites
        "write: create_new_conflicts create_new_on_a_directory create_new_has_one_winner";
    IfUnchangedIsIgnored
        "write: if_unchanged_conflicts if_unchanged_on_a_missing_file
             if_unchanged_has_one_winner";
    StreamFailureKeepsAPart
        "write: failing_stream_keeps_the_old_file failing_stream_creates_nothing";
    EditTakesTheFirst "edit: ambiguous_is_refused";
    EditIsNotAtomic "edit: several_edits_all_or_none outcome_tells_what_happened";
    DeletingMissingIsFine "delete: missing contract: errors_have_context";
    DeleteIsRecursive "delete: directory_needs_recursive";
    RenameOverwrites "rename: never_overwrites race_has_one_winner";
    CopyMovesInstead
        "copy: file_is_copied creates_parents overwrites_when_told directory_is_copied_whole
             empty_file_is_copied race_has_one_winner";
    LimitTakesTheTail
        "glob: limit_gives_the_head
         grep: maximum_gives_the_head maximum_cuts_inside_a_file maximum_keeps_trailing_context";
    ExcludeComesAfterTheLimit
        "ls: exclude_comes_before_the_limit exclude_hides_what_is_inside
         glob: exclude_comes_before_the_limit exclude_hides_what_is_inside
         grep: exclude_hides_content exclude_comes_before_the_maximum";
    IgnoreFilesAreIgnored
        "glob: gitignore_is_honoured ignore_beats_gitignore deeper_beats_shallower
             negation_brings_back nothing_comes_back_inside_an_ignored_directory
             rules_above_the_start_apply anchored_rules directory_only_rules
             start_inside_ignored_directory_is_searched generated_left_out_and_counted
             generated_when_named generated_start_directory_is_searched
             ignore_files_overrule_generated skipped_is_counted
         grep: gitignore_is_honoured generated_left_out_and_counted";
    GeneratedIsSearched
        "glob: generated_left_out_and_counted generated_when_named
             generated_start_directory_is_searched ignore_files_overrule_generated
         grep: generated_left_out_and_counted";
    GeneratedIsNeverSearched
        "glob: ignored_on_request anchored_rules start_inside_ignored_directory_is_searched
             generated_on_request generated_when_named generated_start_directory_is_searched
             ignore_files_overrule_generated
         grep: named_ignored_file_is_searched gitignore_is_honoured generated_on_request
             generated_when_named";
    GeneratedIsNotCounted
        "glob: generated_left_out_and_counted generated_start_directory_is_searched
             ignore_files_overrule_generated
         grep: generated_left_out_and_counted";
    BinaryIsNotCounted "grep: binary_is_passed_over_and_counted";
    TruncationIsNotTold
        "ls: limit_gives_the_head
         glob: limit_gives_the_head
         grep: maximum_gives_the_head maximum_cuts_inside_a_file maximum_keeps_trailing_context
             max_bytes_bounds_the_result";
    ErrorsLackContext
        "edit: missing_text_names_the_nearest_line ambiguous_is_refused
         contract: errors_have_context";
    RangesAreIgnored
        "read: range_gives_its_bytes range_is_cut_at_the_end range_past_the_end_is_invalid
             turned_range_is_invalid exactly_the_maximum_is_read";
    TooMuchIsShortened "read: too_much_is_an_error";
    MissingListsEmpty "ls: missing_is_not_found contract: errors_have_context";
    ExcludedChangesAreTold "watch: excluded_entries_are_never_told";
    WatchIsOneLevel
        "watch: rewritten_file_is_changed move_is_told moved_directory_is_watched_on
             moved_in_is_created new_directories_are_watched copied_directory_is_created
             excluded_entries_are_never_told writes_in_progress_are_not_told
             watches_are_independent";
    RewritesAreCreated
        "watch: rewritten_file_is_changed edited_file_is_changed change_is_visible_when_told
             moved_directory_is_watched_on watches_are_independent";
};
