//! Git's sub-commands with their options, and its settings.
//!
//! Facts are from the manual pages git(1), git-config(1) and those of the sub-commands.
//! A sub-command that is not listed is asked about: it may be an alias, a third-party
//! program, or one of git's own that runs another program or acts as a server.

use super::WordTable;
use crate::options::Row;
use crate::word_list::words;

/// Options before the sub-command. Git takes no abbreviations here.
pub(crate) const GIT: Row = Row::new(
    "git",
    "+C:c:pPhv",
    "exec-path?@ html-path man-path info-path paginate no-pager no-replace-objects no-lazy-fetch \
     no-optional-locks no-advice bare git-dir: work-tree: namespace: super-prefix: config-env@ \
     attr-source: list-cmds: literal-pathspecs glob-pathspecs noglob-pathspecs icase-pathspecs \
     help version",
);

const DIFF: &str = "output> ext-diff*";
const DIFF_SHORT: &str = "0123B?C?DG:I:M?O:RS:U:WX?abcl:mpqrstuvwz#";
const STRATEGY: &str = "strategy@ strategy-option:";

/// Sub-commands, with their short options and the long ones that matter. The other long
/// ones are in [`GIT_LONG`].
pub(crate) const GIT_VERBS: &[Row] = rows! {
    "add stage", "ANefinpuv", "";
    "am", "3bC:S?cikmp:qrsu", "";
    "annotate blame pickaxe", "C?L:M?S:bcefhlnpstwk", "contents<";
    "apply", "3C:NRp:qvz", "directory/ build-fake-ancestor>";
    "archive", "0123456789lo>v", "exec! remote: output>";
    "backfill refs repo history last-modified replay", "zn", "";
    "bisect", "", "";
    "branch", "CDMacdfilmqrt?u:v", "";
    "bugreport diagnose", "o/s:", "output-directory/";
    "bundle", "q", "";
    "cat-file", "epstzZ", "";
    "check-attr check-ignore check-mailmap check-ref-format", "anqvz", "";
    "checkout", "23B:b:dflmpqt?", "";
    "checkout-index", "afnquz", "prefix/";
    "cherry", "v", "";
    "cherry-pick revert", "S?X:em:nrsx", STRATEGY;
    "clean", "Xde:finqx", "";
    "clone", "46b:c@j:lno:qsu!v", "upload-pack! config@ template@ separate-git-dir/";
    "column count-objects version", "Hv", "";
    "commit", "C:F<S?ac:eim:nopqst<u?vz", "template< file<";
    "commit-graph multi-pack-index", "", "object-dir/";
    "commit-tree", "F<S?m:p:", "";
    "config", "+ef>lz", "file> edit* blob: default: type: value: url: comment:";
    "describe name-rev", "", "";
    "diff diff-files diff-index diff-tree range-diff", DIFF_SHORT, DIFF;
    "difftool", "dgt!x!y", "extcmd! tool! tool-help";
    "fast-export", "CM?", "export-marks>";
    "fast-import", "", "export-marks> export-pack-edges>";
    "fetch", "46Pafj:kmno:pqtuv", "upload-pack!";
    "fetch-pack", "kqv", "upload-pack! exec!";
    "filter-branch", "d/f",
        "env-filter! tree-filter! index-filter! parent-filter! msg-filter! commit-filter! \
         tag-name-filter! setup! subdirectory-filter: original: prune-empty force state-branch:";
    "fmt-merge-msg", "F<m:", "";
    "for-each-ref", "ps", "";
    "format-patch", "0123B?C?DI:M?NO:U:WX?abkl:no/pqsv:wz#",
        "output-directory/ output> ext-diff* signature-file<";
    "fsck gc prune prune-packed pack-refs rerere", "nqv", "";
    "grep", "A:B:C:EFGHILNO?!PWace:f<hilm:nopqrvwz#", "open-files-in-pager?! ext-grep";
    "hash-object", "t:w", "";
    "help", "acgimvw*", "web*";
    "index-pack", "o>v", "";
    "init init-db", "b:q", "template@ separate-git-dir/";
    "interpret-trailers", "", "";
    "lfs", "aIXn", "";
    "log show whatchanged", "0123B?C?DEFG:I:L:M?O:PRS:U:WX?abcegil:mn:pqrstuvwz#", DIFF;
    "ls-files", "X<cdfikmostuvx:z", "";
    "ls-remote", "hbo:qt", "upload-pack! exec!";
    "ls-tree", "dlrtz", "";
    "mailinfo mailsplit", "bd:f:kmno/u", "";
    "maintenance", "", "scheduler@";
    "merge", "F<S?X:em:nqs@v", STRATEGY;
    "merge-base merge-tree", "azX:", "";
    "merge-file", "L:pq", "";
    "mktag mktree write-tree get-tar-commit-id", "z", "";
    "mv", "fknv", "";
    "notes", "C:F<c:fm:nqs:v", "";
    "pack-objects pack-redundant", "q", "";
    "patch-id", "", "";
    "pull", "46S?X:aefj?kno:pqr?s@tv", "upload-pack! strategy@ strategy-option:";
    "push", "46dfno:quv", "receive-pack! exec! repo:";
    "read-tree", "imnquv", "index-output>";
    "rebase", "C:S?X:fikmnpqr?s@vx!", "exec! strategy@ strategy-option:";
    "reflog", "nqvz#", "";
    "remote", "vfm:t:pn", "";
    "repack", "AFabdfg:iklmnq", "";
    "replace", "defgl:", "edit*";
    "request-pull", "p", "";
    "reset", "Npq", "";
    "restore", "23SWmpqs:", "";
    "rev-list", "EFPgin:z#", "";
    "rev-parse", "q", "";
    "rm", "fnqr", "";
    "send-pack", "fnqv", "receive-pack! exec!";
    "shortlog", "EFPcegin:sw?#", "output>";
    "show-branch", "ag?r", "";
    "show-ref show-index", "dqs?h", "";
    "sparse-checkout", "", "";
    "stash", "Sakm:pqu", "";
    "status", "M?bsu?vz", "";
    "stripspace", "cs", "";
    "submodule", "Nb:fj:nqm", "";
    "subtree", "P:b:dhm:qS?", "";
    "switch", "C:c:dfmqt?", "";
    "symbolic-ref", "dm:q", "";
    "tag", "F<adefilm:n?su:v#", "";
    "unpack-file unpack-objects update-server-info var", "lnqr", "";
    "update-index", "gqz", "";
    "update-ref", "dm:z", "";
    "verify-commit verify-tag verify-pack", "sv", "";
    "worktree", "B:b:dfnqvz", "";
};

/// Sub-commands whose operands can be URLs of repositories.
pub(crate) const GIT_REMOTES: &[&str] = words!(
    "clone fetch pull push ls-remote remote submodule archive fetch-pack send-pack request-pull
     subtree"
);

/// Git's built-in merge strategies. Any other is a program.
pub(crate) const GIT_STRATEGIES: &[&str] =
    &["ort", "recursive", "resolve", "octopus", "ours", "subtree"];

/// Sub-commands that destroy something, with the options that make them.
pub(crate) const GIT_DESTRUCTIVE: &WordTable = &[
    (&["clean", "rm", "filter-branch"], &[]),
    (&["reset"], &["--hard"]),
    (&["push"], &["-f", "--force", "--delete", "-d", "--mirror"]),
    (&["branch"], &["-D"]),
];

/// Sub-commands that may change any file in the working tree.
pub(crate) const GIT_TREES: &[&str] =
    words!("am apply bisect cherry-pick filter-branch merge pull rebase revert subtree switch");

/// Settings that run nothing. Any other is asked about. A `*` stands for anything, and
/// a trailing dot for a whole section.
pub(crate) const GIT_SETTINGS: &[&str] = words!(
    "user. author. committer. color. advice. branch.autosetupmerge branch.autosetuprebase
     branch.sort branch.*.description branch.*.merge branch.*.rebase pull.ff pull.rebase
     push.autosetupremote push.default push.followtags push.recursesubmodules fetch.all
     fetch.fsckobjects fetch.output fetch.parallel fetch.prune fetch.prunetags
     fetch.recursesubmodules fetch.showforcedupdates fetch.writecommitgraph
     rebase.abbreviatecommands rebase.autosquash rebase.autostash rebase.forkpoint
     rebase.missingcommitscheck rebase.rebasemerges rebase.stat rebase.updaterefs
     merge.conflictstyle merge.ff rerere. log. format.coverletter format.numbered format.pretty
     format.signoff format.thread init.defaultbranch commit.gpgsign tag.gpgsign safe.directory
     http.*extraheader http.*followredirects http.*lowspeedlimit http.*lowspeedtime
     http.*maxrequests http.*postbuffer http.*proxy http.*sslbackend http.*sslcainfo
     http.*sslverify http.*useragent http.*version i18n. gc.auto gc.autodetach gc.autopacklimit
     gc.pruneexpire gc.reflogexpire status. diff.algorithm diff.renames diff.renamelimit
     diff.colormoved diff.noprefix diff.mnemonicprefix core.quotepath core.autocrlf core.eol
     core.filemode core.ignorecase core.longpaths core.abbrev core.bare core.commentchar
     core.safecrlf core.symlinks core.whitespace core.compression core.preloadindex
     core.precomposeunicode core.excludesfile index. pack. feature. grep. help.autocorrect column.
     blame. stash. remote.origin.fetch submodule.recurse apply. clean. transfer.
     receive.denycurrentbranch lfs.url lfs.fetchinclude lfs.fetchexclude lfs.concurrenttransfers
     lfs.skipdownloaderrors"
);

/// The long options of all of git's sub-commands. Each may be prefixed with `no-`.
pub(crate) const GIT_LONG: &str = "\
    3way abbrev abbrev-commit abbrev-ref abort absolute-git-dir active-branches add add-file \
    add-header add-virtual-file advertise-refs after after-context again aggressive ahead-behind \
    aliases all all-match all-progress all-progress-implied allow-binary-replacement allow-empty \
    allow-empty-message allow-overlap allow-unknown-type allow-unrelated-histories \
    allow-unsafe-features also-filter-submodules alt-odb alternate-refs always amend \
    ancestry-path anchored and annotate annotate-stdin anonymize anonymize-map append apply \
    assume-unchanged atomic attach attr-source author author-date-order auto auto-gc \
    auto-maintenance autosquash autostash bare base basic-regexp batch batch-all-objects \
    batch-check batch-command before before-context big-file-threshold binary bisect bisect-all \
    bisect-vars blob bool bool-or-int bool-or-str boundary branch branches break break-rewrites \
    broken buffer build-fake-ancestor build-options bundle-uri cache cached cacheinfo candidates \
    cat-blob-fd cc check check-self-contained-and-connected checkout cherry cherry-mark \
    cherry-pick children chmod cleanup clear-decorations clear-resolve-undo color color-by-age \
    color-lines color-moved color-moved-ws color-words column combined-all-paths command \
    comment-lines commit commit-filter commit-header commit-id committer \
    committer-date-is-author-date compact-summary compression config config-for-completion \
    config-sections-for-completion conflict connectivity-only contains contents context continue \
    convert-graft-file copy count cover-from-description cover-letter create create-reflog \
    creation-factor cruft cruft-expiration cumulative curl current dangling data date \
    date-format date-order dd debug debug-unpack decorate decorate-refs decorate-refs-exclude \
    deduplicate deepen deepen-relative default default-prefix delete delete-branch deleted \
    delta-base-offset delta-islands dense depth deref dereference detach developer-interfaces \
    diagnose diff-algorithm diff-filter diff-merges diff3 dir-diff directory dirstat \
    dirstat-by-file dirty disambiguate discard-changes disk-usage dissociate divider do-walk \
    done dry-run dst-prefix dual-color edit edit-description edit-todo email empty \
    empty-directory encode-email-headers encoding env-filter eol error-unmatch exact-match \
    exclude exclude-existing exclude-first-parent-only exclude-from exclude-guides \
    exclude-hidden exclude-per-directory exclude-promisor-objects exclude-standard exec \
    exit-code expand-tabs expire expire-to expire-unreachable expiry-date export-marks \
    export-pack-edges ext-diff ext-grep extcmd extended-regexp external-commands \
    fake-missing-tagger fetch ff ff-only file filename-max-length files files-with-matches \
    files-without-match filter filter-print-omitted filter-provided-objects filters find-copies \
    find-copies-harder find-object find-renames first-parent fix-thin fixed-strings fixed-value \
    fixup flags follow follow-symlinks follow-tags force force-create force-if-includes \
    force-in-body-from force-rebase force-remove force-untracked-cache force-with-lease \
    force-write-index fork-point format from fsck-objects fsmonitor fsmonitor-valid full \
    full-diff full-history full-index full-name full-tree function-context geometric get get-all \
    get-color get-colorbool get-regexp get-url get-urlmatch git-common-dir git-dir git-path glob \
    global gpg-sign graft graph grep grep-reflog group guess gui guides hard hardlinks hash head \
    header heading heads help helper-status histogram honor-pack-keep http-backend-info-refs \
    human-readable if-exists if-missing ignore-all-space ignore-blank-lines ignore-cache-tree \
    ignore-case ignore-cr-at-eol ignore-date ignore-errors ignore-if-in-upstream ignore-joins \
    ignore-matching-lines ignore-missing ignore-other-worktrees ignore-removal ignore-rev \
    ignore-revs-file ignore-skip-worktree-bits ignore-skip-worktree-entries ignore-space-at-eol \
    ignore-space-change ignore-submodules ignore-unmatch ignore-unmerged ignore-whitespace \
    ignored import-marks import-marks-if-exists in-commit-order in-place in-reply-to \
    inaccurate-eof inbody-headers include include-tag include-untracked includes incremental \
    indent indent-heuristic independent index index-filter index-info index-output index-version \
    indexed-objects info info-only init initial-branch inline int intent-to-add \
    inter-hunk-context interactive interdiff into-name invert-grep invert-match ipv4 ipv6 \
    irreversible-delete is-ancestor is-bare-repository is-inside-git-dir is-inside-work-tree \
    is-shallow-repository ita-invisible-in-index ita-visible-in-index jobs keep keep-base \
    keep-cr keep-dashdash keep-empty keep-index keep-largest-pack keep-non-patch keep-pack \
    keep-redundant-commits keep-subject keep-true-parents keep-unreachable killed left-only \
    left-right line-number line-porcelain line-prefix list list-cmds literally local \
    local-env-vars local-user lock log log-size long lost-found mailmap mainline man mark-tags \
    marker-size match max-age max-count max-cruft-size max-depth max-input-size max-pack-size \
    max-parents mboxrd merge merge-base merged merges message message-id messages min-age \
    min-parents minimal mirror missing missing-ok mixed mode modified more move msg-filter mtime \
    multiple naked name name-objects name-only name-status negotiate-only negotiation-tip nl \
    non-empty non-matching normalize not notes null numbered numbered-files numstat object-dir \
    object-format object-names object-only objects objects-edge objects-edge-aggressive octopus \
    oneline only only-input only-matching only-trailers only-untracked onto open-files-in-pager \
    or origin original orphan others ours output output-directory output-indicator-context \
    output-indicator-new output-indicator-old overlay overwrite-ignore pack-kept-objects \
    pack-loose-unreachable padding pager paginate parent-filter parents parse parseopt patch \
    patch-format patch-with-raw patch-with-stat patches path path-format pathspec-file-nul \
    pathspec-from-file patience peel-tag perl perl-regexp pickaxe-all pickaxe-regex points-at \
    porcelain post-rewrite prefetch prefix preserve-merges pretty progress progress-title \
    promisor prompt prune prune-empty prune-tags push-option python quiet quit quoted-cr \
    range-diff raw raw-mode really-refresh reapply-cherry-picks reason rebase rebase-merges \
    rebasing receive-pack recount recurse recurse-submodules recurse-submodules-default \
    recursive reedit-message reencode ref ref-format reference reference-excluded-parents \
    reference-if-able refetch reflog reflogs refmap refresh refs refspec refspec-pattern \
    regexp-ignore-case reject reject-shallow reject-thin-pack-for-testing rejoin relative \
    relative-date remerge remerge-diff remote remote-submodules remotes remove remove-empty \
    remove-section rename-empty rename-section renames renormalize replace replace-all repo \
    rerere-autoupdate reroll-count reschedule-failed-exec reset reset-author reset-author-date \
    resolve-git-dir resolve-undo resolved resolvemsg reuse-delta reuse-message reuse-object \
    reverse revision revs revs-only rewrite rewrite-submodules-from rewrite-submodules-to rfc \
    right-only root rotate-to schedule scheduler scissors score-debug separate-git-dir series \
    server-option set-upstream set-upstream-to setup sha1-name shallow shallow-exclude \
    shallow-since shallow-submodules shared shared-index-path shell short shortstat show-cdup \
    show-current show-current-patch show-email show-forced-updates show-function \
    show-linear-break show-name show-notes show-number show-object-format show-origin \
    show-original-ids show-prefix show-pulls show-scope show-signature show-stash show-stats \
    show-superproject-working-tree show-toplevel sign signature signature-file signed \
    signed-tags signoff simplify-by-decoration simplify-merges since since-as-filter \
    single-branch single-worktree skip skip-to skip-worktree soft sort source sparse \
    sparse-checkout split-index sq sq-quote squash src-prefix stable stage staged stale-fix \
    start-number stat stat-count stat-graph-width stat-name-width stat-only stat-width \
    state-branch stateless-rpc stats status stdin stdin-packs stdin-paths stdout \
    stop-at-non-option strategy strategy-option strict strip-comments stuck-long \
    subdirectory-filter subject-prefix submodule submodule-prefix suffix summary summary-limit \
    symbolic symbolic-full-name symlinks symref system tag-name-filter tag-of-filtered-object \
    tags task tcl temp template test-untracked-cache text textconv theirs thin thread threads \
    timeout timestamp to tool tool-help topics topo-order track trailer tree-filter trim-empty \
    trivial trivial-merge trust-exit-code type undefined unfold unidiff-zero unified union \
    unmerged unordered unpack-unreachable unpacked unreachable unresolve unsafe-paths unset \
    unset-all unset-upstream unshallow unstable until untracked untracked-cache untracked-files \
    update update-head-ok update-refs update-shallow updateref upload-pack uri-protocol \
    use-bitmap-index use-done-feature use-mailmap user-interfaces utf8 verbatim verbose verify \
    verify-signatures version walk walk-reflogs warn-embedded-repo web where whitespace width \
    window window-memory with with-tree without word-diff word-diff-regex word-regexp worktree \
    worktree-attributes write-bitmap-index write-bitmap-index-quiet write-commit-graph \
    write-fetch-head write-midx write-tree ws-error-highlight zdiff3 zero-commit";
