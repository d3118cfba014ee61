//! The second part of the table of [`CASES`](crate::CASES): cases for real file systems
//! and real commands.

/// Calls `$callback!` with its arguments and the cases for real file systems.
#[doc(hidden)]
#[macro_export]
macro_rules! __with_filesystem_cases {
    ($callback:path { $($arguments:tt)* } $($groups:tt)*) => {
        $callback! {
            { $($arguments)* }
            $($groups)*
            link_read {
                file_link_is_read_through [Write, Links] "D links: reading follows",
                directory_link_is_entered [Write, Links] "D links: reading follows; D ls: paths can be handed back",
                chain_is_followed [Write, Links] "D links: reading follows; D resolve: every link",
                parent_in_a_link_climbs_from_the_link [Write, Links] "D resolve; UA `..` climbs from the link's place",
                parent_after_a_link_climbs_from_its_target [Write, Links] "D resolve; UA `..` climbs from the link's target",
                absolute_link_inside_is_followed [Write, Links] "D links: what stays inside is followed; D resolve",
                stat_describes_the_target [Write, Links] "D stat: a link is described by what it leads to",
                file_link_lists_itself [Write, Links] "D ls: a regular file lists itself; D stat: links are marked",
                dangling_link_is_missing [Write, Links] "D links: reading follows; D: missing is NotFound; U9.8",
                link_beneath_a_file [Write, Links] "D: beneath a file",
                circle_is_invalid [Write, Links] "D resolve: circle; U12.10; UA a loop breaks no listing",
                link_out_is_denied [Links, Outside] "D: confinement is PermissionDenied; S links out (CVE-2025-53109)",
                link_out_is_listed_as_a_link [Links, Outside] "D ls: a link that leads nowhere this backend follows; U0 symlink row in ls",
                link_out_and_back_is_denied [Write, Links, Outside] "D: confinement; S links out (CVE-2025-53109)",
                resolve_goes_to_the_end [Write, Links] "D resolve: no link left, missing end kept; UA realpath",
                resolve_of_a_link_out_is_denied [Links, Outside] "D resolve: PermissionDenied if a link leads outside",
                refused_by_every_read [Write, Links] "D links: Refuse is IsALink, last component and above",
                refused_link_out_is_a_link [Links, Outside] "D links: Refuse is IsALink; S rules dodged through a link (CVE-2026-25724)",
                refusing_is_free_without_links [Write, Links] "D links: Refuse only if one would have to be followed",
            }
            link_write {
                write_replaces_the_target [Write, Links] "D links: write follows; UA writes go through symlinks",
                write_goes_into_a_linked_directory [Write, Links] "D links: write follows",
                write_through_a_dangling_link_creates_its_target [Write, Links] "D resolve: where a file written would come to stand",
                write_mode_is_about_the_target [Write, Links] "D WriteMode; D links: write follows",
                write_to_a_directory_link [Write, Links] "D write: IsADirectory; D links: write follows",
                write_beneath_a_file_link [Write, Links] "D write: NotADirectory; D links: write follows",
                edit_changes_the_target [Write, Links] "D links: edit follows",
                edits_through_two_names_lose_nothing [Write, Links] "D edit: both apply or one gets Conflict; U9.31",
                directories_are_made_through_links [Write, Links] "D create_dir: a directory that exists is a success",
                link_out_is_denied [Links, Outside] "D: confinement is PermissionDenied; S links out (CVE-2025-53109, CVE-2026-39861)",
                refused_by_every_write [Write, Links] "D links: Refuse is IsALink",
                failed_write_changes_nothing [Write, Links] "D write: after an error the file is what it was",
            }
            link_move {
                delete_takes_the_link [Write, Links] "D links: delete acts on the link; UA removes a link itself",
                recursive_delete_follows_no_link [Write, Links] "D delete: a directory and all it holds; S deleting through links",
                delete_goes_into_a_linked_directory [Write, Links] "D links: Follow above the path",
                rename_moves_the_link [Write, Links] "D links: rename acts on the link",
                copy_keeps_the_text [Write, Links] "D links: copy acts on the link",
                recursive_copy_copies_links [Write, Links] "D links: copy acts on the link; D copy: a directory and all it holds",
                link_at_the_destination_is_replaced_itself [Write, Links] "D links: last components are never followed",
                link_replaces_a_file [Write, Links] "D rename: a directory is never replaced; D links: rename and copy act on the link",
                parents_may_be_links [Write, Links] "D links: Follow above either path",
                onto_itself_through_a_link [Write, Links] "D rename, copy: InvalidInput onto itself",
                into_itself_through_a_link [Write, Links] "D rename, copy: InvalidInput into itself",
                link_out_is_denied [Write, Links, Outside] "D: confinement is PermissionDenied; S links out (CVE-2025-53109)",
                link_out_itself_is_only_a_link [Write, Links, Outside] "D links: acts on the link itself; S links out",
                refused_above_either_path [Write, Links] "D links: Refuse is IsALink, above either path",
                refusing_acts_on_the_link_itself [Write, Links] "D links: the last component is never followed",
            }
            link_search {
                glob_passes_over_file_links [Write, Links] "D glob: regular files only, links not followed",
                glob_enters_no_linked_directory [Write, Links] "D glob: links not followed",
                grep_follows_no_link [Write, Links] "D grep: which files are searched, as in glob",
                start_may_be_a_directory_link [Write, Links] "D glob, grep: links on the way to the start",
                start_may_be_a_file_link [Write, Links] "D grep: a file that is named is searched; D glob: NotADirectory",
                links_out_are_not_searched [Write, Links, Outside] "D glob, grep: links not followed; S links out (CVE-2025-53109)",
                ignore_file_that_leads_out_is_not_read [Write, Links, Outside] "D glob: ignore files from the root down; S links out",
                refusing_is_about_the_start [Write, Links] "D glob, grep: links on the way to the start",
            }
            special {
                fifo_is_described [Fifo] "D stat; D exists: regular files only",
                fifo_is_never_waited_for [Fifo] "D read: a FIFO is never opened to wait; UA FIFO; S FIFO hangs",
                fifo_is_not_written [Write, Fifo] "D write: as read, neither file nor directory is InvalidInput; S FIFO hangs",
                fifo_can_be_deleted [Write, Fifo] "D delete: a directory and all it holds",
                fifo_is_not_searched [Write, Fifo] "D glob, grep: regular files only; S a FIFO named `.ignore` hangs a search",
                link_to_a_fifo [Links, Fifo] "D links: reading and writing follow; S FIFO hangs",
                raw_names_are_counted_by_searches [Write, RawName] "D paths: not UTF-8 is counted",
                raw_names_are_deleted_with_their_directory [Write, RawName] "D delete: a directory and all it holds",
                raw_names_go_along_with_their_directory [Write, RawName] "D copy, rename: a directory and all it holds",
            }
            modes {
                bits_are_told [Write, Modes] "D stat: permission bits",
                new_file_is_plain [Write, Modes] "D write: a new file is not executable",
                write_keeps_bits [Write, Modes] "D write: permission bits are kept",
                edit_keeps_bits [Write, Modes] "D edit: as write, permission bits are kept",
                write_through_a_link_keeps_bits [Write, Modes, Links] "D write: permission bits are kept; D links: write follows",
                copy_copies_bits [Write, Modes] "D copy: permission bits are copied",
                rename_keeps_bits [Write, Modes] "D rename: moves a file or a directory",
                copy_of_a_closed_directory [Write, Modes] "D copy: a directory and all it holds, permission bits included",
                changes_advance_the_time [Write, Times, SetTime] "D stat: time of last change",
                rename_keeps_the_time [Write, Times, SetTime] "D stat: time of the last change to the content",
                edited_script_still_runs [Write, Modes, Commands] "D edit: permission bits are kept; D: files and commands share one place",
            }
            read_only {
                every_change_is_denied [Write, ReadOnly] "D: a backend that cannot be written to",
                reading_works [Write, ReadOnly] "D: a backend that cannot be written to can be read",
                says_so [Write, ReadOnly] "D capabilities: writable",
            }
            execute {
                commands_see_files [Write, Commands] "UA files and commands share one filesystem",
                files_see_commands [Commands] "UA files and commands share one filesystem; U9.16",
                link_by_a_command_is_no_way_out [Commands, Outside] "D: confinement; S links out (CVE-2025-53109)",
                exit_code_is_a_result [Commands] "D Sandbox: a code is a result; U9.45",
                missing_program_is_127 [Write, Commands] "D Sandbox: a missing program; UA 127",
                signal_is_a_result [Commands] "D Sandbox: death by a signal; U9.57",
                input_is_at_its_end [Commands] "D Sandbox: standard input at the end of file",
                runs_in_its_directory [Write, Commands] "D Command: directory; U9.42",
                directory_must_be_one [Write, Commands] "D execute: NotFound and NotADirectory for its directory",
                directory_may_be_a_link_inside [Write, Commands, Links, Outside] "D: confinement; S a directory that widened the root (CVE-2025-59532)",
                variables_are_verbatim [Commands] "D Command: environment; UA env layered; U9.42",
                nothing_carries_over [Write, Commands] "D Command: environment on top of the sandbox's; S poisoned environment (CVE-2026-22708)",
                quoting_is_the_shells [Write, Commands] "D Sandbox: run by `sh -c`; U9.42",
                line_like_an_option_is_a_line [Commands] "D Sandbox: run by `sh -c`; S argument injection",
                signals_are_not_held_back [Commands] "D Sandbox: run by `sh -c`, as any shell would run it",
                empty_line_succeeds [Commands] "D Sandbox: run by `sh -c`",
                nonsense_is_invalid [Commands] "D execute: InvalidInput as Command::check says; U9.40",
                longest_line_runs [Commands] "D limits: the longest command line",
                time_limit_is_only_a_limit [Commands] "D Command: timeout; U9.40",
                many_at_once [Commands] "D: concurrency; U9.56",
            }
            output {
                streams_are_apart [Commands] "D Streams: Apart",
                merged_streams_keep_their_order [Commands] "D Streams: Merged, exact order",
                bytes_are_kept [Commands] "D Sandbox: bytes that are not UTF-8 are kept; U9.43",
                nothing_is_added [Commands] "D Output: exactly what was printed",
                long_output_keeps_both_ends [Commands] "D Output: beginning, end and how much is missing; U9.47",
                exactly_the_limit_is_whole [Commands] "D Command: output_bytes; U12.16",
                default_limit [Commands] "D limits: OUTPUT_BYTES of each stream",
                large_output_is_whole [Commands] "UA output complete or said to be cut; UA 8 MiB",
                endless_output_is_ended [Commands] "D CommandStatus: OutputLimited; S output without end",
                exactly_the_hard_limit_is_fine [Commands] "D Command: hard_output_bytes",
            }
            process {
                timeout_gives_what_was_printed [Commands] "D Sandbox: what was printed so far comes back; U9.50; UA timeout",
                timeout_ends_the_whole_tree [Commands] "D Sandbox: the whole process tree ends; U9.41",
                timeout_asks_first [Commands] "D Sandbox: TERM, a grace, KILL",
                leftovers_are_ended_and_counted [Commands] "D Sandbox: leftovers; UA a background child delays no result",
                quiet_leftovers_are_ended [Commands] "D Sandbox: what is left in its group is ended; U9.48",
                nothing_left_is_nothing_counted [Commands] "D ExecuteOutcome: leftovers",
                leftovers_stay_when_told [Commands] "D Command: keep_leftovers",
                dropped_command_ends [Commands] "D Sandbox: when the future is dropped; U9.41; UA cancellation",
                dropped_stream_ends [Commands] "D Sandbox: when the stream is dropped; U9.41",
                unread_stream_ends_when_dropped [Commands] "D Sandbox: when the stream is dropped",
                output_limit_ends_the_whole_tree [Commands] "D Sandbox: when it prints more than it may",
                killed_shell_takes_its_tree [Commands] "D shell_kill: everything it started",
                stop_ends_everything [Commands] "D stop: ends every command; U9.55",
            }
            stream {
                gives_what_execute_gives [Commands] "D stream: as execute; D Event: Ended is last",
                tells_while_it_runs [Commands] "D stream: tells what it prints as it does",
                pieces_keep_their_order [Commands] "D stream: in order; D Streams",
                slow_reader_gets_everything [Commands] "D stream: a slow reader slows the command, nothing is dropped",
                whole_output_goes_by [Commands] "D stream: nothing is dropped",
                limits_end_it [Commands] "D stream: as execute; D CommandStatus",
                many_wait_for_one_another [Commands] "D: concurrency; U9.56",
            }
            shell {
                starts [Commands] "D shell_start",
                read_takes_what_is_new [Commands] "D shell_read: since the last look",
                wait_ends_with_output [Commands] "D shell_read: waits for something new",
                wait_ends_with_the_shell [Commands] "D shell_read: or its end",
                wait_ends_in_time [Commands] "D shell_read: up to `wait`",
                input_reaches_it [Commands] "D shell_write",
                much_input_reaches_it [Commands] "D shell_write: whatever the size",
                closed_input_ends_it [Commands] "D shell_write: None closes it; Conflict if its input is closed",
                ended_shell_takes_no_input [Commands] "D shell_write: Conflict if it has ended",
                unread_input_hangs_nobody [Commands] "D shell_write: Conflict if it has ended",
                kill_says_whether_it_ran [Commands] "D shell_kill: returns whether it still ran",
                listed_in_order [Commands] "D shell_list: in the order they were started",
                unknown_is_not_found [Commands] "D shells: NotFound if there is no such shell",
                number_is_capped [Commands] "D shell_start: TooLarge; D limits: SHELLS",
                ids_are_unique [Commands] "D ShellId: names a shell within its sandbox",
                unread_log_is_bounded [Commands] "D limits: SHELL_LOG_BYTES; D ShellOutput: dropped",
                is_a_command_like_others [Write, Commands] "D shell_start: as execute",
                time_limit_ends_it [Commands] "D Sandbox: when its time runs out",
                readers_share_the_output [Commands] "D shell_read: takes what was printed",
            }
            terminal {
                streams_are_the_terminal [Terminals] "D Command::terminal; D ShellInfo: terminal",
                has_its_size [Terminals] "D Command::terminal",
                new_size_is_told [Terminals] "D shell_resize: told with SIGWINCH",
                shell_leads_a_session [Terminals] "D shell_start: the first process of a session",
                jobs_are_controlled [Terminals] "D Command::terminal: the controlling terminal",
                typed_text_is_echoed [Terminals] "D shell_attach: input is passed on",
                interrupt_key_ends_the_program [Terminals] "D Command::terminal: the controlling terminal",
                signal_reaches_the_foreground [Terminals] "D shell_signal: the foreground of its terminal; Conflict if it has ended",
                signal_needs_no_terminal [Terminals] "D shell_signal: without one to its process group",
                end_of_file_ends_the_program [Terminals] "D shell_write: None types the end-of-file character",
                kill_ends_the_whole_tree [Terminals] "D shell_kill: everything it started",
                jobs_end_with_the_shell [Terminals] "D shell_start: all its processes end with it",
                kind_is_in_the_environment [Terminals] "D Command::terminal: TERM",
                bytes_pass_unchanged [Terminals] "D shell_attach: byte for byte",
                other_calls_have_none [Terminals] "D check_without_terminal; D TerminalSize: check",
                size_needs_a_terminal [Terminals] "D shell_resize: Conflict if it has no terminal or has ended",
                unknown_is_not_found [Terminals] "D shells: NotFound if there is no such shell",
            }
            attach {
                unread_output_comes_first [Terminals] "D shell_attach: the unread output comes first",
                detached_shell_runs_on [Terminals] "D shell_attach: dropping the incoming half detaches",
                slow_reader_gets_everything [Terminals] "D shell_attach: nothing is dropped",
                reading_is_a_conflict [Terminals] "D shell_read: Conflict while a connection is attached",
                second_takes_over [Terminals] "D shell_attach: another takes over",
                needs_no_terminal [Terminals] "D shell_attach: without a terminal both streams arrive",
                ended_shell_shows_its_last_output [Terminals] "D shell_attach: the output ends when the shell ends",
                unread_connection_delays_no_kill [Terminals] "D shell_kill; D shell_attach",
            }
            sandbox {
                id_is_stable [Commands] "D Sandbox: id; UA ref is stable",
                starts [Commands] "D start: a sandbox that runs already is a success",
                command_starts_it [Commands] "D start: operations do so by themselves",
                stops [Commands] "D stop: twice is a success; D is_alive: never starts one",
                starts_again_with_its_files [Commands] "D StopMode: Keep",
                stop_is_told_to_running_commands [Commands] "D Sandbox: one that goes away is Unavailable; U9.57",
                stop_forgets_shells [Commands] "D stop: ends every command",
                activity_is_noted [Write, Commands] "D last_activity",
                looking_is_no_activity [Commands] "D last_activity: an operation that began or ended",
            }
        }
    };
}
