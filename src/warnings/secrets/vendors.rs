//! Tokens that can be recognised by the form that their vendor documents.

use super::values::{is_placeholder, is_slug};

/// The characters of a token after its prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Alphabet {
    /// `0-9a-f`
    Hex,
    /// `A-Z0-9`
    Upper,
    /// `A-Za-z0-9`
    Letters,
    /// `A-Za-z0-9_-`
    Url,
}

impl Alphabet {
    const fn has(self, c: char) -> bool {
        match self {
            Self::Hex => matches!(c, '0'..='9' | 'a'..='f'),
            Self::Upper => matches!(c, '0'..='9' | 'A'..='Z'),
            Self::Letters => c.is_ascii_alphanumeric(),
            Self::Url => c.is_ascii_alphanumeric() || c == '_' || c == '-',
        }
    }
}

/// Prefixes, the characters that follow, and at least and at most how many.
const TOKENS: &[(&str, Alphabet, usize, usize)] = &[
    // Amazon: ids of access keys
    ("AKIA", Alphabet::Upper, 16, 16),
    ("ASIA", Alphabet::Upper, 16, 16),
    ("ABIA", Alphabet::Upper, 16, 16),
    // Google: API key, client secret, access token
    ("AIza", Alphabet::Url, 35, 35),
    ("GOCSPX-", Alphabet::Url, 28, 28),
    ("ya29.", Alphabet::Url, 40, 2_000),
    // Code hosts and registries
    ("ghp_", Alphabet::Letters, 30, 255),
    ("gho_", Alphabet::Letters, 30, 255),
    ("ghu_", Alphabet::Letters, 30, 255),
    ("ghs_", Alphabet::Letters, 30, 255),
    ("ghr_", Alphabet::Letters, 30, 255),
    ("github_pat_", Alphabet::Url, 30, 255),
    ("glpat-", Alphabet::Url, 20, 300),
    ("gldt-", Alphabet::Url, 20, 300),
    ("glrt-", Alphabet::Url, 20, 300),
    ("glptt-", Alphabet::Hex, 40, 40),
    ("ATBB", Alphabet::Letters, 28, 40),
    ("ATATT3", Alphabet::Url, 100, 300),
    ("npm_", Alphabet::Letters, 30, 40),
    ("pypi-AgE", Alphabet::Url, 40, 300),
    ("rubygems_", Alphabet::Hex, 48, 48),
    ("cio", Alphabet::Letters, 32, 32),
    ("dckr_pat_", Alphabet::Url, 27, 40),
    ("dckr_oat_", Alphabet::Url, 27, 40),
    ("AKCp", Alphabet::Letters, 69, 69),
    // Models
    ("sk-", Alphabet::Url, 30, 300),
    ("hf_", Alphabet::Letters, 30, 40),
    ("gsk_", Alphabet::Letters, 50, 56),
    ("xai-", Alphabet::Letters, 70, 90),
    ("pplx-", Alphabet::Letters, 40, 60),
    ("r8_", Alphabet::Letters, 37, 40),
    // Chat and mail
    ("xoxb-", Alphabet::Url, 20, 300),
    ("xoxp-", Alphabet::Url, 20, 300),
    ("xoxa-", Alphabet::Url, 20, 300),
    ("xoxr-", Alphabet::Url, 20, 300),
    ("xoxs-", Alphabet::Url, 20, 300),
    ("xoxe-", Alphabet::Url, 20, 300),
    ("xapp-", Alphabet::Url, 20, 300),
    ("SK", Alphabet::Hex, 32, 32),
    ("key-", Alphabet::Hex, 32, 32),
    // Payment and shops
    ("sk_live_", Alphabet::Letters, 16, 250),
    ("rk_live_", Alphabet::Letters, 16, 250),
    ("whsec_", Alphabet::Letters, 24, 64),
    ("sq0atp-", Alphabet::Url, 22, 22),
    ("sq0csp-", Alphabet::Url, 43, 43),
    ("shpat_", Alphabet::Letters, 32, 32),
    ("shpca_", Alphabet::Letters, 32, 32),
    ("shppa_", Alphabet::Letters, 32, 32),
    ("shpss_", Alphabet::Letters, 32, 32),
    // Hosting, data and operations
    ("dop_v1_", Alphabet::Hex, 64, 64),
    ("doo_v1_", Alphabet::Hex, 64, 64),
    ("dor_v1_", Alphabet::Hex, 64, 64),
    ("hvs.", Alphabet::Url, 24, 300),
    ("hvb.", Alphabet::Url, 24, 300),
    ("dapi", Alphabet::Hex, 32, 32),
    ("pul-", Alphabet::Hex, 40, 40),
    ("tskey-", Alphabet::Url, 24, 100),
    ("glsa_", Alphabet::Url, 32, 60),
    ("sntryu_", Alphabet::Hex, 64, 64),
    ("sbp_", Alphabet::Hex, 40, 40),
    ("pscale_tkn_", Alphabet::Url, 32, 64),
    ("pscale_pw_", Alphabet::Url, 32, 64),
    ("PMAK-", Alphabet::Url, 50, 70),
    ("NRAK-", Alphabet::Upper, 27, 27),
    ("lin_api_", Alphabet::Letters, 40, 40),
    ("ntn_", Alphabet::Letters, 40, 50),
    ("figd_", Alphabet::Url, 40, 60),
    ("AGE-SECRET-KEY-1", Alphabet::Upper, 58, 58),
];

/// Whether a text holds a token of a known vendor.
pub fn has_token(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    let mut words = text.split(|c| !is_part(c));
    words.any(|word| word.len() >= 20 && is_token(word.trim_end_matches('.')))
        || has_bot_token(text)
        || has_webhook(text)
}

fn is_token(word: &str) -> bool {
    let known = TOKENS.iter().any(|(prefix, alphabet, least, most)| {
        word.strip_prefix(prefix)
            .is_some_and(|rest| is_body(rest, *alphabet, *least, *most))
    });
    known || is_two_part_token(word) || is_signed_token(word)
}

/// Whether the characters after a prefix are those of a token.
fn is_body(rest: &str, alphabet: Alphabet, least: usize, most: usize) -> bool {
    let end = rest.find(|c| !alphabet.has(c)).unwrap_or(rest.len());
    let (body, after) = rest.split_at_checked(end).unwrap_or((rest, ""));
    let ends = after.is_empty() || after.starts_with('.');
    ends && (least..=most).contains(&body.len()) && is_random(body)
}

/// Whether a vendor's program made the characters, rather than a person as an example.
fn is_random(body: &str) -> bool {
    let mut seen: Vec<char> = body.chars().collect();
    seen.sort_unstable();
    seen.dedup();
    let has_capital = body.chars().any(|c| c.is_ascii_uppercase());
    seen.len() >= 6 && !is_placeholder(body) && (has_capital || !is_slug(body))
}

/// `SG.ID.KEY` of SendGrid.
fn is_two_part_token(word: &str) -> bool {
    let parts = word
        .strip_prefix("SG.")
        .and_then(|rest| rest.split_once('.'));
    parts.is_some_and(|(id, key)| {
        is_body(id, Alphabet::Url, 16, 32) && is_body(key, Alphabet::Url, 32, 64)
    })
}

/// A JSON Web Token: two parts that begin like the base64 of `{"`, and a signature.
fn is_signed_token(word: &str) -> bool {
    let mut parts = word.split('.');
    let mut begins = |least: usize| {
        let part = parts.next().unwrap_or_default();
        part.len() >= least && part.chars().all(|c| Alphabet::Url.has(c))
    };
    word.starts_with("eyJ") && word.contains(".eyJ") && begins(15) && begins(10) && begins(16)
}

/// Whether a text holds the token of a Telegram bot: the bot's number, `:`, and 35 characters.
fn has_bot_token(text: &str) -> bool {
    text.match_indices(":AA").any(|(at, _)| {
        let before = text.get(..at).unwrap_or_default();
        let digits = before.len() - before.trim_end_matches(|c: char| c.is_ascii_digit()).len();
        let rest = text.get(at + 1..).unwrap_or_default();
        let end = rest.find(|c| !Alphabet::Url.has(c)).unwrap_or(rest.len());
        (8..=12).contains(&digits) && end == 35 && is_random(rest.get(..end).unwrap_or_default())
    })
}

/// Addresses to which anybody who knows them can post.
const WEBHOOKS: [&str; 3] = [
    "hooks.slack.com/services/",
    "discord.com/api/webhooks/",
    "discordapp.com/api/webhooks/",
];

fn has_webhook(text: &str) -> bool {
    WEBHOOKS.iter().any(|begin| {
        text.match_indices(begin).any(|(at, _)| {
            let rest = text.get(at + begin.len()..).unwrap_or_default();
            let is_part = |c: char| Alphabet::Url.has(c) || c == '/';
            let rest = rest.split(|c| !is_part(c)).next().unwrap_or_default();
            let last = rest.rsplit('/').next().unwrap_or_default();
            rest.contains('/') && last.len() >= 24 && is_random(last)
        })
    })
}
