//! The texts of the console tools.

use permissions::tool::Tool;

use super::Text;
use crate::options::EditFormat;

pub(super) fn text(tool: Tool, format: EditFormat) -> Text {
    match tool {
        Tool::ReadFile if format == EditFormat::Hashline => READ_BY_HASH,
        Tool::Ls | Tool::ReadFile | Tool::Glob | Tool::Grep => read_tool(tool),
        Tool::WriteFile
        | Tool::EditFile
        | Tool::HashlineEdit
        | Tool::DeleteFile
        | Tool::MoveFile
        | Tool::CopyFile => write_tool(tool),
        _ => command_tool(tool),
    }
}

fn read_tool(tool: Tool) -> Text {
    match tool {
        Tool::Ls => Text {
            summary: "Lists a directory.",
            usage: "Not recursive; use glob for that.",
            coding: "Look before you guess a path.",
            returns: "Returns directories first, with a slash, then files with their sizes; \
                      hidden entries too, at most {ls_entries}.",
        },
        Tool::ReadFile => Text {
            summary: "Reads a text file, at most {read_lines} lines at a time.",
            usage: "offset counts lines from 0, the numbers shown count from 1. \
                    Leave the numbers out when you quote a line in an edit.",
            coding: "Read a file before you edit it, and read it again after a formatter ran. \
                     Read several files in one turn if you need them all.",
            returns: "Returns numbered lines and, if there are more, how to get them. \
                      A reply that starts with 'Error:' says what to change.",
        },
        Tool::Glob => Text {
            summary: "Finds files by name.",
            usage: "A pattern without a slash matches at any depth. Hidden and ignored files \
                    and generated directories such as node_modules are left out.",
            coding: "Prefer it to find.",
            returns: "Returns paths, sorted; at most {glob_files}, and how many more there are.",
        },
        Tool::Grep => Text {
            summary: "Searches the contents of files for a regular expression.",
            usage: "Returns the paths of the files; with output_mode content the lines and \
                    their numbers, with count only how many.",
            coding: "Prefer it to grep or rg in a shell; it works without one. \
                     Narrow a search with path and glob_pattern before you read the results.",
            returns: "At most {grep_results} results, lines cut at {grep_line_chars} \
                      characters, and how many more there are.",
        },
        _ => Text::default(),
    }
}

const READ_BY_HASH: Text = Text {
    summary: "Reads a text file, at most {read_lines} lines at a time.",
    usage: "Each line is shown as number:hash|text; hashline_edit wants number and hash. \
            offset counts lines from 0, the numbers shown count from 1.",
    coding: "Read a file before you edit it, and read it again after a formatter ran.",
    returns: "Returns the lines and, if there are more, how to get them. \
              A reply that starts with 'Error:' says what to change.",
};

fn write_tool(tool: Tool) -> Text {
    match tool {
        Tool::WriteFile => Text {
            summary: "Writes a whole file, replacing any existing content.",
            usage: "Parent directories are created. To change part of a file use {edit}.",
            coding: "Do not create files that were not asked for, least of all README or summary \
                     files. Never write passwords or keys. The file counts as read afterwards.",
            returns: "",
        },
        Tool::EditFile => Text {
            summary: "Replaces exact text in a file.",
            usage: "old_string must match exactly, with all white space, and occur only once \
                    unless replace_all is set; add lines around it until it is unique. \
                    Several edits in one call apply all or none.",
            coding: "Read the file first. If it changed since, the edit is refused: read it again.",
            returns: "A failed match answers with the nearest lines.",
        },
        Tool::HashlineEdit => Text {
            summary: "Replaces, inserts or deletes lines of a file, named by number and hash.",
            usage: "Take start_line and start_hash from read_file; add end_line and \
                    end_hash for a range.",
            coding: "Numbers shift after an edit: work from the bottom up, or put all edits of a \
                     file into one call.",
            returns: "If a hash does not match, the current lines are shown.",
        },
        Tool::DeleteFile => Text {
            summary: "Deletes a file, or a directory if recursive is set.",
            usage: "This cannot be undone.",
            ..Text::default()
        },
        Tool::MoveFile => Text {
            summary: "Moves or renames a file or directory.",
            usage: "Fails if the destination exists, unless overwrite is set.",
            ..Text::default()
        },
        Tool::CopyFile => Text {
            summary: "Copies a file, or a directory if recursive is set.",
            usage: "Fails if the destination exists, unless overwrite is set.",
            ..Text::default()
        },
        _ => Text::default(),
    }
}

fn command_tool(tool: Tool) -> Text {
    match tool {
        Tool::Execute => Text {
            summary: "Runs a shell command and waits for it.",
            usage: "It has no input, and {ends} after {execute_seconds} seconds unless timeout \
                    says otherwise. Each call is a new shell: chain related commands with &&.",
            coding: "Use the file tools to read, write and search. Quote paths with spaces. Read \
                     the whole output before you act; reproduce a failure before you fix it; \
                     after three failed attempts try something else. Check what is installed \
                     before you use it. In git make new commits, stage files by name, commit only \
                     when asked to, and run destructive commands only when asked to.",
            returns: "Returns the output. If it exceeds {output_bytes} bytes, its beginning and \
                      end are shown, and all of it is kept in a file to read or grep. A failed \
                      command reports its exit code.",
        },
        Tool::RunInBackground => Text {
            summary: "Starts a command that keeps running, such as a server.",
            usage: "Follow it with read_output, end it with kill_shell.",
            coding: "End what you started when you are done.",
            returns: "Returns the shell's id.",
        },
        Tool::ReadOutput => Text {
            summary: "Returns the new output of a background shell, and whether it is still \
                      running.",
            ..Text::default()
        },
        Tool::WriteInput => Text {
            summary: "Writes text to the standard input of a background shell.",
            ..Text::default()
        },
        Tool::KillShell => Text {
            summary: "Ends a background shell and everything it started.",
            ..Text::default()
        },
        Tool::ListShells => Text {
            summary: "Lists the background shells and whether they run.",
            ..Text::default()
        },
        _ => Text::default(),
    }
}
