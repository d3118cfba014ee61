//! Programs whose options name commands, or files to write.
//!
//! The marks are those of [`Row`]. Facts are from the manual pages of coreutils,
//! tar, cpio, findutils, diffutils, sed, dpkg, apt, and of each program.

use crate::options::Row;
use crate::word_list::words;

/// `sed`, whose scripts are parsed too.
pub(crate) const SED: Row = Row::new(
    "sed gsed",
    "Ee:f<i?l:nrsuz",
    "debug expression: file< follow-symlinks help in-place? line-length: null-data posix \
         quiet regexp-extended sandbox separate silent unbuffered version zero-terminated",
);

/// Programs whose first operand can be a pattern, a script or a mode instead of a file.
/// It is a file if one of the listed options is given. With `None`, every operand is a
/// file. An unknown option is not asked about here, but then every word may be a file.
pub(crate) const FIRST_OPERANDS: &[(Row, Option<&[&str]>)] = rows! {
    SED.names, SED.short, SED.long, Some(&["e", "expression", "f", "file"]);
    "grep egrep fgrep ggrep zgrep zegrep zfgrep", "A:B:C:D:EFGHILPRTUVZabcd:e:f<hilm:noqrsuvwxyz#",
        "after-context: basic-regexp before-context: binary binary-files: byte-offset color? \
         colour? context: count dereference-recursive devices: directories: exclude: exclude-dir: \
         exclude-from< extended-regexp file< files-with-matches files-without-match fixed-strings \
         group-separator: help ignore-case include: initial-tab invert-match label: line-buffered \
         line-number line-regexp max-count: no-filename no-group-separator no-ignore-case \
         no-messages null null-data only-matching perl-regexp quiet recursive regexp: silent text \
         unix-byte-offsets version with-filename word-regexp", Some(&["e", "regexp", "f", "file"]);
    "ag ack", "HLQScilnrsvw",
        "color column count files-with-matches group heading hidden ignore-case literal nocolor \
         nogroup noheading smart-case word-regexp", Some(&[]);
    "awk gawk mawk nawk original-awk", "CD?<E<F:IL?MNOPSVW:bcd?>e:f<ghi<kl:no?>p?>rstv:",
        "assign: bignum characters-as-bytes copyright csv debug?< dump-variables?> exec< \
         field-separator: file< gen-pot help include< lint-old lint? load: no-optimize \
         non-decimal-data optimize posix pretty-print?> profile?> re-interval sandbox source: \
         trace traditional use-lc-numeric version",
        Some(words!("f file e source E exec i include l load"));
    "jq", "CL<MRSVabcefhjnrs",
        "arg: argjson: args ascii-output binary color-output compact-output exit-status from-file \
         help indent: join-output jsonargs library-path< monochrome-output null-input raw-input \
         raw-output raw-output0 rawfile: seq slurp slurpfile: sort-keys stream stream-errors tab \
         unbuffered version", Some(&["f", "from-file"]);
    "chmod gchmod", "HLPRcfhv",
        "changes dereference help no-dereference no-preserve-root preserve-root quiet recursive \
         reference< silent verbose version", Some(&["reference"]);
    "chown chgrp gchown gchgrp", "HLPRcfhnvx",
        "changes dereference from: help no-dereference no-preserve-root preserve-root quiet \
         recursive reference< silent verbose version", Some(&["reference"]);
    "setfacl", "LM<PRX<bdhkm:nvx:",
        "default help logical mask modify-file< modify: no-mask physical recursive remove-all \
         remove-default remove-file< remove: restore< set-file< set: test version", None;
    "uniq guniq", "D?cdf:is:uw:z#",
        "all-repeated? check-chars: count group? help ignore-case repeated skip-chars: \
         skip-fields: unique version zero-terminated", None;
};

pub(crate) const PROGRAMS: &[Row] = rows! {
    // coreutils
    "cp gcp", "HLPRS:TZabdfilnprst/uvx",
        "archive attributes-only backup? context? copy-contents debug dereference force help \
         interactive keep-directory-symlink link no-clobber no-dereference no-preserve: \
         no-target-directory one-file-system parents preserve? recursive reflink? \
         remove-destination sparse: strip-trailing-slashes suffix: symbolic-link target-directory/ \
         update? verbose version";
    "mv gmv", "S:TZbfint/uvx",
        "backup? context debug exchange force help interactive no-clobber no-copy \
         no-target-directory strip-trailing-slashes suffix: target-directory/ update? verbose \
         version";
    "ln gln", "FLPS:Tbdfhinrst/vw",
        "backup? directory force help interactive logical no-dereference no-target-directory \
         physical relative suffix: symbolic target-directory/ verbose version";
    "install ginstall", "CDS:TZbcdg:m:o:pst/vf:l:M:N:h:",
        "backup? compare context? debug directory group: help mode: no-target-directory owner: \
         preserve-context preserve-timestamps strip strip-program! suffix: target-directory/ \
         verbose version";
    "sort gsort", "C?MRS:T/Vbc?dfghik:mno>rst:uz",
        "batch-size: buffer-size: check? compress-program! debug dictionary-order field-separator: \
         files0-from< general-numeric-sort help human-numeric-sort ignore-case \
         ignore-leading-blanks ignore-nonprinting key: merge month-sort numeric-sort output> \
         parallel: random-sort random-source< reverse sort: stable temporary-directory/ unique \
         version version-sort zero-terminated";
    "shuf gshuf", "ei:n:o>rz",
        "echo head-count: help input-range: output> random-source< repeat version zero-terminated";
    "split gsplit", "C:a:b:del:n:t:ux#",
        "additional-suffix: bytes: elide-empty-files filter! help hex-suffixes? line-bytes: lines: \
         number: numeric-suffixes? separator: suffix-length: unbuffered verbose version";
    "csplit gcsplit", "b:f>kn:sqz",
        "digits: elide-empty-files help keep-files prefix> quiet silent suffix-format: \
         suppress-matched version";
    "tee gtee", "aip", "append help ignore-interrupts output-error? version";
    "truncate gtruncate", "cor<s:", "help io-blocks no-create reference< size: version";
    "shred gshred", "fn:s:uvxz",
        "exact force help iterations: random-source< remove? size: verbose version zero";
    "mktemp gmktemp", "dp?qtuV", "directory dry-run help quiet suffix: tmpdir? version";
    // glibc, diffutils, patch, sed
    "iconv", "Vcf:lo>st:", "from-code: help list output> silent to-code: usage verbose version";
    "diff gdiff", "BC?D:EF:I:L:NS:TU?W:X<Zabc?dehilnpqrstu?vwx:yH#",
        "brief changed-group-format: color? context? ed exclude: exclude-from< expand-tabs \
         forward-ed from-file< help horizon-lines: ifdef: ignore-all-space ignore-blank-lines \
         ignore-case ignore-file-name-case ignore-matching-lines: ignore-space-change \
         ignore-tab-expansion ignore-trailing-space initial-tab label: left-column line-format: \
         minimal new-file new-group-format: new-line-format: no-dereference \
         no-ignore-file-name-case normal old-group-format: old-line-format: paginate palette: rcs \
         recursive report-identical-files show-c-function show-function-line: side-by-side \
         speed-large-files starting-file: strip-trailing-cr suppress-blank-empty \
         suppress-common-lines tabsize: text to-file< unchanged-group-format: \
         unchanged-line-format: unidirectional-new-file unified? version width:";
    "sdiff", "BEHI:WZabdilo>stvw:",
        "diff-program! expand-tabs help ignore-all-space ignore-blank-lines ignore-case \
         ignore-matching-lines: ignore-space-change ignore-tab-expansion ignore-trailing-space \
         left-column minimal output> speed-large-files strip-trailing-cr suppress-common-lines \
         tabsize: text version width:";
    "diff3", "3AEL:TXaeimx",
        "diff-program! easy-only ed help initial-tab label: merge overlap-only show-all \
         show-overlap strip-trailing-cr text version";
    "patch gpatch", "B:D:EF:NRTV:Y:Zbcd/e*fg:i<lno>p:r>stuvz:",
        "backup backup-if-mismatch batch binary context directory/ dry-run ed* follow-symlinks \
         force forward fuzz: get: help ifdef: ignore-whitespace input< merge? \
         no-backup-if-mismatch normal output> posix prefix: quiet quoting-style: read-only: \
         reject-file> reject-format: remove-empty-files reverse set-time set-utc silent strip: \
         suffix: unified verbose version version-control: basename-prefix:";
    SED.names, SED.short, SED.long;
    // archives
    "tar gtar", "=ABC/F!GH:I!JK:L:MN:OPRST<UV:WX<Zab:cdf:g>hijklmnoprstuvwxz#",
        "absolute-names acls add-file: after-date: anchored append atime-preserve? auto-compress \
         backup? block-number blocking-factor: bzip2 catenate check-device check-links checkpoint? \
         checkpoint-action! clamp-mtime compare compress concatenate confirmation create \
         delay-directory-restore delete dereference diff directory/ exclude: exclude-backups \
         exclude-caches exclude-caches-all exclude-caches-under exclude-from< exclude-ignore: \
         exclude-ignore-recursive: exclude-tag: exclude-tag-all: exclude-tag-under: exclude-vcs \
         exclude-vcs-ignores extract file: files-from< force-local format: full-time get group: \
         group-map: gunzip gzip hard-dereference help hole-detection: ignore-case \
         ignore-command-error ignore-failed-read ignore-zeros incremental index-file> info-script! \
         interactive keep-directory-symlink keep-newer-files keep-old-files label: level: list \
         listed-incremental> lzip lzma lzop mode: mtime: multi-volume new-volume-script! newer: \
         newer-mtime: no-acls no-anchored no-auto-compress no-check-device \
         no-delay-directory-restore no-ignore-case no-ignore-command-error no-null \
         no-overwrite-dir no-quote-chars: no-recursion no-same-owner no-same-permissions no-seek \
         no-selinux no-unquote no-verbatim-files-from no-wildcards no-wildcards-match-slash \
         no-xattrs null numeric-owner occurrence? old-archive one-file-system one-top-level?/ \
         overwrite overwrite-dir owner: owner-map: pax-option: portability posix preserve-order \
         preserve-permissions quote-chars: quoting-style: read-full-records record-size: recursion \
         recursive-unlink remove-files restrict rmt-command! rsh-command! same-order same-owner \
         same-permissions seek selinux set-mtime-command! set-mtime-format: show-defaults \
         show-omitted-dirs show-snapshot-field-ranges show-stored-names show-transformed-names \
         skip-old-files sort: sparse sparse-version: starting-file: strip-components: suffix: \
         tape-length: test-label to-command! to-stdout totals? touch transform: uncompress ungzip \
         unlink-first unquote update usage use-compress-program! utc verbatim-files-from verbose \
         verify version volno-file> warning: wildcards wildcards-match-slash xattrs \
         xattrs-exclude: xattrs-include: xform: xz zstd";
    "bsdtar", "=ab:BcC/f:HhI<jJkLlmnOopPqrSs:T<tUuvwW:X<xyZz",
        "acls no-acls auto-compress bzip2 cd/ chroot clear-nochange-fflags compress confirmation \
         create dereference disable-copyfile exclude: exclude-vcs extract fast-read fflags \
         no-fflags file: files-from< format: gid: gname: grzip gunzip gzip help hfsCompression \
         ignore-zeros include: insecure keep-newer-files keep-old-files list lrzip lz4 lzma lzop \
         mac-metadata newer: no-recursion no-same-owner no-same-permissions no-safe-writes null \
         numeric-owner older: one-file-system options: passphrase: posix preserve-permissions \
         read-full-blocks same-owner same-permissions strip-components: to-stdout totals uid: \
         uname: unlink-first update use-compress-program! uuencode verbose version xattrs xz zstd";
    "cpio", "0aAbBcC:D/dE<F:fH:iI<klLmM:noO>pR:rsStuvV",
        "null reset-access-time append swap block-size: io-size: directory/ make-directories \
         pattern-file< file: nonmatching format: extract create pass-through list link dereference \
         preserve-modification-time message: numeric-uid-gid no-absolute-filenames \
         absolute-filenames no-preserve-owner owner: rename rename-batch-file< rsh-command! sparse \
         swap-bytes swap-halfwords to-stdout unconditional verbose dot force-local only-verify-crc \
         quiet renumber-inodes ignore-devno ignore-dirnlink device-independent reproducible \
         trailer: warning: help usage version";
    "unzip", "Z@AcflptTuvxd/abBCDEFiJjKLMnNoP:qsSUVWXYO:I:", "";
    // network transfers
    "rsync", "0468\\@:ABCDEFHIKLM@NOPRST/abcde!f:ghij:klmnopqrstuvwxyz",
        "8-bit-output acls address: append append-verify archive atimes backup backup-dir/ \
         block-size: blocking-io bwlimit: cc: checksum checksum-choice: checksum-seed: chmod: \
         chown: compare-dest: compress compress-choice: compress-level: contimeout: copy-as: \
         copy-dest: copy-devices copy-dirlinks copy-links copy-unsafe-links cvs-exclude crtimes \
         daemon* debug: del delay-updates delete delete-after delete-before delete-delay \
         delete-during delete-excluded delete-missing-args devices dirs dparam: dry-run \
         early-input< exclude: exclude-from< executability existing exit fake-super files-from< \
         filter: force from0 fsync fuzzy group groupmap: hard-links help human-readable iconv: \
         ignore-errors ignore-existing ignore-missing-args ignore-non-existing ignore-times \
         include: include-from< info: inplace ipv4 ipv6 itemize-changes keep-dirlinks link-dest: \
         links list-only log-file> log-file-format: log-format: max-alloc: max-delete: max-size: \
         min-size: mkpath modify-window: motd munge-links no-implied-dirs no-motd no-r no-o no-g \
         no-p no-t no-D no-owner no-group no-perms no-times no-recursive no-links no-whole-file \
         no-relative no-inc-recursive no-compress numeric-ids omit-dir-times omit-link-times \
         one-file-system only-write-batch> open-noatime out-format: outbuf: owner partial \
         partial-dir/ password-file< perms port: preallocate progress protect-args protocol: \
         prune-empty-dirs quiet read-batch< recursive relative remote-option@ remove-source-files \
         rsh! rsync-path! safe-links secluded-args skip-compress: size-only sockopts: sparse \
         specials stats stderr: stop-after: stop-at: suffix: super temp-dir/ timeout: times \
         trust-sender update usermap: verbose version whole-file write-batch> write-devices* \
         xattrs inc-recursive old-args old-dirs";
    // the first operand ends the options, except for those after the host
    "ssh", "+46AaB:b:Cc:D:E>e:F@fGgI@i<J:KkL:l:MNm:nO:o:P:p:Q:qR:S:sTtVvW:w:XxYy", "";
    "scp", "346ABCc:D@F@i<J@l:o@OP:pqRrS!sTvX:", "";
    "sftp", "46AaB:b<CD@c:F@fi<J@l:No@P:pqR:rS!s:vX:", "";
    "wget", "46A:B:D:E:FHI:KLNO>P/Q:R:ST:U:VX:a>bcde@hi<kl:mn:o>pqrt:vw:x",
        "accept: accept-regex: adjust-extension append-output> ask-password auth-no-challenge \
         background backup-converted backups? base: bind-address: bind-dns-address: body-data: \
         body-file< ca-certificate< ca-directory: certificate< certificate-type: \
         check-certificate? ciphers: compression: config@ connect-timeout: content-disposition \
         content-on-error continue convert-file-only convert-links crl-file< cut-dirs: debug \
         default-page: delete-after directories directory-prefix/ dns-cache dns-servers: \
         dns-timeout: domains: dont-remove-listing egd-file: exclude-directories: exclude-domains: \
         execute@ follow-ftp follow-tags: force-directories force-html ftp-password: ftp-stmlf \
         ftp-user: ftps-clear-data-connection ftps-fallback-to-ftp ftps-implicit ftps-resume-ssl \
         glob header: help host-directories hsts hsts-file> html-extension http-keep-alive \
         http-passwd: http-password: http-user: https-only if-modified-since ignore-case \
         ignore-length ignore-tags: include-directories: inet4-only inet6-only input-file< \
         input-metalink: iri keep-badhash keep-session-cookies level: limit-rate: load-cookies< \
         local-encoding: max-redirect: metalink-over-http method: mirror netrc no quiet no-cache \
         no-check-certificate no-clobber no-config no-cookies no-directories no-dns-cache no-glob \
         no-host-directories no-hsts no-http-keep-alive no-if-modified-since no-iri no-netrc \
         no-parent no-passive-ftp no-proxy no-remove-listing no-use-server-timestamps no-verbose \
         no-warc-compression no-warc-digests no-warc-keep-log output-document> output-file> \
         page-requisites parent passive-ftp password: pinnedpubkey: post-data: post-file< \
         prefer-family: preferred-location: preserve-permissions private-key< private-key-type: \
         progress: protocol-directories proxy? proxy-passwd: proxy-password: proxy-user: quota: \
         random-file: random-wait read-timeout: recursive referer: regex-type: reject: \
         reject-regex: rejected-log> relative remote-encoding: remove-listing report-speed: \
         restrict-file-names: retr-symlinks retry-connrefused retry-on-host-error \
         retry-on-http-error: save-cookies> save-headers secure-protocol: server-response \
         show-progress span-hosts spider start-pos: strict-comments timeout: timestamping tries: \
         trust-server-names unlink use-askpass! use-proxy use-server-timestamps user: user-agent: \
         verbose version wait: waitretry: warc-cdx warc-compression warc-dedup< warc-digests \
         warc-file> warc-header: warc-keep-log warc-max-size: warc-tempdir/ xattr";
    "curl",
        "0123456789A:BC:D>E:F:GH:IJK@LMNOP:Q:RST<U:VX:Y:Zab:c>d:e:fghij:kl:m:no>pqr:st:u:vw:x:y:z:\\#",
        CURL_LONG;
    // building
    "make gmake", "bBC%deE@f<hiI:j?:kl?:Lmno:O?:pqrRsStvwW:",
        "always-make assume-new: assume-old: check-symlink-times debug? directory% dry-run \
         environment-overrides eval@ file< help ignore-errors include-dir: jobs? jobserver-auth: \
         jobserver-style: just-print keep-going load-average? makefile< max-load? new-file: \
         no-builtin-rules no-builtin-variables no-keep-going no-print-directory no-silent \
         old-file: output-sync? print-data-base print-directory question quiet recon shuffle? \
         silent stop touch trace version warn-undefined-variables what-if:";
    // finding and reading
    "rg", "0A:B:C:E:FHILM:NPST:UVabce:f<g:hij:lm:noqr:st:uvwxzd:", RIPGREP_LONG;
    "man", "7C@DE:H?!IKL:M:P!R:S:T?VWX?Zacde:fhiklm:p@r:s:tuw?",
        "all apropos ascii catman config-file@ debug default ditroff encoding: extension: \
         global-apropos gxditview? help html?! ignore-case local-file locale: location \
         location-cat manpath: match-case names-only nh nj no-hyphenation no-justification \
         no-subpages pager! path preprocessor@ prompt: recode: regex sections: systems: troff \
         troff-device? update usage version warnings? whatis where where-cat wildcard";
    // bash
    "mapfile readarray", "d:n:O:s:tu:C!c:", "";
    "jobs", "lnprsx*", "";
    "history", "cd:a>n<r<w>p*s*#", "";
};

/// Long options of `curl`.
const CURL_LONG: &str = "\
    abstract-unix-socket: alt-svc> anyauth append aws-sigv4: basic ca-native cacert< capath: \
    cert-status cert-type: cert< ciphers: compressed compressed-ssh config@ connect-timeout: \
    connect-to: continue-at: cookie-jar> cookie: create-dirs create-file-mode: crlf crlfile: \
    curves: data-ascii: data-binary: data-raw: data-urlencode: data: delegation: digest disable \
    disable-eprt disable-epsv disallow-username-in-url dns-interface: dns-ipv4-addr: \
    dns-ipv6-addr: dns-servers: doh-cert-status doh-insecure doh-url: dump-ca-embed dump-header> \
    ech: egd-file: engine@ etag-compare< etag-save> expect100-timeout: fail fail-early \
    fail-with-body false-start follow form-escape form-string: form: ftp-account: \
    ftp-alternative-to-user: ftp-create-dirs ftp-method: ftp-pasv ftp-port: ftp-pret \
    ftp-skip-pasv-ip ftp-ssl-ccc ftp-ssl-ccc-mode: ftp-ssl-control get globoff \
    happy-eyeballs-timeout-ms: haproxy-clientip: haproxy-protocol head header: help hostpubmd5: \
    hostpubsha256: hsts> http0.9 http1.0 http1.1 http2 http2-prior-knowledge http3 http3-only \
    ignore-content-length include insecure interface: ip-tos: ipfs-gateway: ipv4 ipv6 json: \
    junk-session-cookies keepalive-cnt: keepalive-time: key-type: key< knownhosts: krb: libcurl> \
    limit-rate: list-only local-port: location location-trusted login-options: mail-auth: \
    mail-from: mail-rcpt-allowfails mail-rcpt: manual max-filesize: max-redirs: max-time: \
    metalink mptcp negotiate netrc netrc-file< netrc-optional next no-alpn no-buffer no-clobber \
    no-keepalive no-npn no-progress-meter no-sessionid noproxy: ntlm ntlm-wb oauth2-bearer: \
    out-null output-dir/ output> parallel parallel-immediate parallel-max-host: parallel-max: \
    pass: path-as-is pinnedpubkey: post301 post302 post303 preproxy progress-bar proto-default: \
    proto-redir: proto: proxy proxy-anyauth proxy-basic proxy-ca-native proxy-cacert: \
    proxy-capath: proxy-cert-type: proxy-cert: proxy-ciphers: proxy-crlfile: proxy-digest \
    proxy-header: proxy-http2 proxy-insecure proxy-key-type: proxy-key: proxy-negotiate \
    proxy-ntlm proxy-pass: proxy-pinnedpubkey: proxy-service-name: proxy-ssl-allow-beast \
    proxy-ssl-auto-client-cert proxy-tls13-ciphers: proxy-tlsauthtype: proxy-tlspassword: \
    proxy-tlsuser: proxy-tlsv1 proxy-user: proxy1.0: proxytunnel pubkey: quote: random-file: \
    range: rate: raw referer: remote-header-name remote-name remote-name-all remote-time \
    remove-on-error request-target: request: resolve: retry-all-errors retry-connrefused \
    retry-delay: retry-max-time: retry: sasl-authzid: sasl-ir service-name: show-error sigalgs: \
    silent skip-existing socks4: socks4a: socks5-basic socks5-gssapi socks5-gssapi-nec \
    socks5-gssapi-service: socks5-hostname: socks5: speed-limit: speed-time: ssl ssl-allow-beast \
    ssl-auto-client-cert ssl-no-revoke ssl-reqd ssl-revoke-best-effort ssl-sessions> sslv2 sslv3 \
    stderr> styled-output suppress-connect-headers tcp-fastopen tcp-nodelay telnet-option: \
    tftp-blksize: tftp-no-options time-cond: tls-earlydata tls-max: tls13-ciphers: tlsauthtype: \
    tlspassword: tlsuser: tlsv1 tlsv1.0 tlsv1.1 tlsv1.2 tlsv1.3 tr-encoding trace-ascii> \
    trace-config: trace-ids trace-time trace> unix-socket: upload-file< upload-flags: url-query: \
    url: use-ascii user-agent: user: variable: verbose version vlan-priority: write-out: xattr";

/// Long options of `rg`.
const RIPGREP_LONG: &str = "\
    after-context: auto-hybrid-regex before-context: binary block-buffered byte-offset \
    case-sensitive color: colors: column context: context-separator: count count-matches crlf \
    debug dfa-size-limit: encoding: engine: field-context-separator: field-match-separator: \
    file< files files-with-matches files-without-match fixed-strings follow generate: glob: \
    glob-case-insensitive heading help hidden hostname-bin! hyperlink-format: iglob: ignore-case \
    ignore-file< ignore-file-case-insensitive include-zero invert-match json line-buffered \
    line-number line-regexp max-columns: max-columns-preview max-count: max-depth: maxdepth: \
    max-filesize: mmap multiline multiline-dotall no-config no-filename no-ignore no-ignore-dot \
    no-ignore-exclude no-ignore-files no-ignore-global no-ignore-messages no-ignore-parent \
    no-ignore-vcs no-messages no-require-git no-unicode null null-data one-file-system \
    only-matching passthru passthrough path-separator: pcre2 pcre2-unicode pcre2-version pre! \
    pre-glob: pretty quiet regex-size-limit: regexp: replace: require-git search-zip smart-case \
    sort: sortr: sort-files stats stop-on-nonmatch text threads: trace trim type: type-add: \
    type-clear: type-list type-not: unicode unrestricted version vimgrep with-filename \
    word-regexp";
