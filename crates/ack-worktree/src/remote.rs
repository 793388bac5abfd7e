//! Normalises git remotes: the URLs of one repository differ by protocol, host and settings. They
//! are compared as `host/path`, after the replacements that git (`url.<base>.insteadOf`) and ssh
//! (`HostName` of an alias) would make, and as written: a shared manifest knows no user's settings.

use std::path::Path;

use gix_config::File;
use gix_ignore::glob::wildmatch;

use crate::repository::user_settings;
use ack_sys::files;

const MAX_SSH_CONFIG_BYTES: u64 = 256 << 10;
/// Hosts that serve ssh on the https port, and their main hosts.
const SSH_OVER_HTTPS: [(&str, &str); 3] = [
    ("ssh.github.com", "github.com"),
    ("altssh.gitlab.com", "gitlab.com"),
    ("altssh.bitbucket.org", "bitbucket.org"),
];

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UrlRewrites {
    /// The start of a URL, and what git replaces it with.
    prefixes: Vec<(String, String)>,
    hosts: Vec<SshHost>,
}

/// A `Host` of an ssh configuration that has a `HostName`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct SshHost {
    patterns: Vec<String>,
    name: String,
}

impl UrlRewrites {
    pub fn read(repository: Option<&File>, home: Option<&Path>) -> Self {
        let mut rewrites = Self::default();
        repository.into_iter().for_each(|config| rewrites.add_prefixes(config));
        let Some(home) = home else { return rewrites };
        user_settings(Some(home)).for_each(|config| rewrites.add_prefixes(&config));
        if let Ok(text) = files::read(&home.join(".ssh/config"), MAX_SSH_CONFIG_BYTES) {
            rewrites.hosts = ssh_hosts(&String::from_utf8_lossy(&text));
        }
        rewrites
    }

    fn add_prefixes(&mut self, config: &File) {
        for section in config.sections_by_name("url").into_iter().flatten() {
            let Some(base) = section.header().subsection_name() else { continue };
            let beginnings = section.values("insteadOf").into_iter();
            self.prefixes.extend(beginnings.map(|it| (it.to_string(), base.to_string())));
        }
    }

    /// A remote as `host/path`: with the user's settings applied, then as written.
    pub fn spellings(&self, url: &str) -> Vec<String> {
        let url = url.trim();
        let matching = self
            .prefixes
            .iter()
            .filter(|(beginning, _)| !beginning.is_empty() && url.starts_with(beginning));
        let replaced =
            matching.max_by_key(|(beginning, _)| beginning.len()).and_then(|(beginning, base)| {
                Some(format!("{base}{}", url.strip_prefix(beginning.as_str())?))
            });
        let mut all = Vec::new();
        for url in replaced.iter().map(String::as_str).chain([url]) {
            let remote = Remote::parse(url);
            let resolved = match &remote {
                Remote::Ssh(host, path) => {
                    self.host_name(host).map(|host| Remote::Ssh(host, path.clone()).show())
                }
                _ => None,
            };
            for spelling in resolved.into_iter().chain([remote.show()]) {
                if !spelling.is_empty() && !all.contains(&spelling) {
                    all.push(spelling);
                }
            }
        }
        all
    }

    /// The host that ssh connects to, if its configuration changes it.
    fn host_name(&self, host: &str) -> Option<String> {
        let matches =
            |pattern: &str| wildmatch(pattern.into(), host.into(), wildmatch::Mode::empty());
        let found = self.hosts.iter().find(|known| {
            let mut refused = known.patterns.iter().filter_map(|it| it.strip_prefix('!'));
            !refused.any(matches) && known.patterns.iter().any(|pattern| matches(pattern))
        })?;
        Some(found.name.replace("%h", host).replace("%%", "%"))
    }
}

/// The hosts of an ssh configuration (`ssh_config(5)`) that have a `HostName`. `Include` is not
/// followed, and `Match` sections are skipped.
fn ssh_hosts(text: &str) -> Vec<SshHost> {
    let mut hosts = Vec::new();
    let mut patterns: Option<Vec<String>> = Some(vec!["*".to_owned()]);
    for line in text.lines().map(str::trim).filter(|line| !line.starts_with('#')) {
        let Some((key, value)) = line.split_once(|c: char| c.is_whitespace() || c == '=') else {
            continue;
        };
        let value = value.trim_start_matches(|c: char| c.is_whitespace() || c == '=').trim();
        let words = || value.split_whitespace().map(|word| word.trim_matches('"').to_lowercase());
        match key.to_lowercase().as_str() {
            "host" => patterns = Some(words().collect()),
            "match" => patterns = None,
            "hostname" => {
                if let (Some(patterns), Some(name)) = (&patterns, words().next()) {
                    hosts.push(SshHost { patterns: patterns.clone(), name });
                }
            }
            _ => {}
        }
    }
    hosts
}

enum Remote {
    Ssh(String, String),
    Net(String, String),
    Local(String),
}

impl Remote {
    fn parse(url: &str) -> Self {
        let url = url.trim();
        if let Some((scheme, rest)) = url.split_once("://")
            && scheme.eq_ignore_ascii_case("file")
        {
            let path = rest.strip_prefix("localhost").unwrap_or(rest);
            let slashes = if path.starts_with('/') { "" } else { "//" };
            return Self::Local(format!("{slashes}{path}"));
        }
        if url.starts_with(['/', '~', '.']) {
            return Self::Local(url.to_owned());
        }
        let url = url.strip_prefix("git+").unwrap_or(url);
        match gix_url::parse(url) {
            Ok(parsed) if parsed.host().is_some() => {
                let host = parsed.host().unwrap_or_default().to_lowercase();
                let path = parsed.path.to_string();
                match parsed.scheme {
                    gix_url::Scheme::Ssh => Self::Ssh(host, path),
                    _ => Self::Net(host, path),
                }
            }
            _ => {
                let (host, path) = url.split_once('/').unwrap_or((url, ""));
                Self::Net(host.to_lowercase(), path.to_owned())
            }
        }
    }

    fn show(&self) -> String {
        match self {
            Self::Local(path) => without_git(path.to_lowercase().trim_end_matches('/')).to_owned(),
            Self::Ssh(host, path) | Self::Net(host, path) => {
                let path = path.to_lowercase();
                let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
                let shown = format!("{}/{}", canonical_host(host), without_git(&parts.join("/")));
                shown.trim_matches('/').to_owned()
            }
        }
    }
}

fn without_git(path: &str) -> &str {
    path.strip_suffix(".git").unwrap_or(path).trim_end_matches('/')
}

fn canonical_host(host: &str) -> &str {
    let host = host.trim_end_matches('.');
    let host = host.strip_prefix("www.").unwrap_or(host);
    SSH_OVER_HTTPS.iter().find(|(other, _)| *other == host).map_or(host, |(_, canonical)| canonical)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normalise(url: &str) -> String {
        Remote::parse(url).show()
    }

    #[test]
    fn every_spelling_of_a_remote_is_normalised() {
        let urls = "git@github.com:Org/api.git https://github.com/org/api
            https://user:token@github.com/org/api.git/ ssh://git@github.com:22/org/api.git
            ssh://git@ssh.github.com:443/org/api.git git@ssh.github.com:org/api.git
            git+ssh://git@github.com/org/api https://www.github.com/org//api
            www.github.com/org/api.git github.com/org/api";
        for url in urls.split_whitespace() {
            assert_eq!(normalise(url), "github.com/org/api", "{url}");
        }
        for folder in "/srv/api.git file:///srv/api file://localhost/srv/api/".split(' ') {
            assert_eq!(normalise(folder), "/srv/api", "{folder}");
        }
        assert_eq!(normalise("file://files/api.git"), "//files/api");
    }

    #[test]
    fn host_names_resolve_as_in_ssh() {
        let text = "# work\nHost *.corp !build.corp\n  HostName %h.example.com\n\nHost=work personal\n\thostname = GitHub.com\n\
                    Match host other\nHostName wrong.example.com\nHost \"quoted\"\nHostName ssh.github.com\nPort 443\n";
        let rewrites = UrlRewrites { hosts: ssh_hosts(text), ..UrlRewrites::default() };
        let first = |url: &str| rewrites.spellings(url).first().cloned().unwrap_or_default();
        assert_eq!(first("git@work:org/x.git"), "github.com/org/x");
        assert_eq!(first("ssh://git@personal/org/x"), "github.com/org/x");
        assert_eq!(first("quoted:org/x"), "github.com/org/x");
        assert_eq!(first("git.corp:org/x"), "git.corp.example.com/org/x");
        assert_eq!(first("build.corp:org/x"), "build.corp/org/x");
        assert_eq!(first("other:org/x"), "other/org/x");
        assert_eq!(first("https://work/org/x"), "work/org/x", "an alias is one of ssh alone");
        assert_eq!(rewrites.spellings("work:org/x"), ["github.com/org/x", "work/org/x"]);
    }
}
