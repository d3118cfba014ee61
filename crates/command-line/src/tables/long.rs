//! Long options of programs that have many.

/// Long options of `curl`.
pub(crate) const CURL: &str = "\
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
pub(crate) const RIPGREP: &str = "\
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
