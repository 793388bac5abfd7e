//! The words by which orders to the reader of a text are recognised.

/// Verbs that take instructions away, in several languages.
pub const IGNORE: &[&str] = &[
    "ignore",
    "disregard",
    "forget",
    "override",
    "discard",
    "bypass", // English
    "ignoriere",
    "ignorieren",
    "ignoriert",
    "vergiss",
    "vergessen",
    "missachte", // German
    "ignora",
    "ignorad",
    "olvida",
    "olvide",
    "descarta",
    "omite", // Spanish
    "ignorez",
    "oublie",
    "oubliez", // French
    "ignorate",
    "dimentica",
    "esqueça",
    "desconsidere", // Italian, Portuguese
    "negeer",
    "vergeet", // Dutch
    "игнорируй",
    "игнорируйте",
    "забудь",
    "забудьте", // Russian
];

/// What such a verb takes away.
pub const INSTRUCTIONS: &[&str] = &[
    "instructions",
    "instruction",
    "prompt",
    "prompts",
    "context",
    "rules",
    "guidelines",
    "directives",
    "directions", // English
    "anweisungen",
    "anweisung",
    "instruktionen",
    "vorgaben",
    "befehle", // German
    "instrucciones",
    "indicaciones",
    "órdenes",
    "reglas", // Spanish
    "consignes",
    "istruzioni",
    "instruções",
    "instructies",
    "инструкции",
    "указания",
];

/// Which ones.
pub const EARLIER: &[&str] = &[
    "previous",
    "prior",
    "above",
    "earlier",
    "preceding",
    "foregoing",
    "your",
    "system",
    "vorherigen",
    "vorherige",
    "vorangegangenen",
    "vorigen",
    "bisherigen",
    "früheren",
    "obigen",
    "anteriores",
    "previas",
    "precedentes",
    "précédentes",
    "antérieures",
    "ci-dessus",
    "precedenti",
    "prévias",
    "vorige",
    "voorgaande",
    "eerdere",
    "предыдущие",
    "предыдущих",
    "прежние",
];

/// Words that stand for all that was said.
pub const EVERYTHING: &[&str] = &["everything", "anything", "all", "alles", "todo", "tout"];

/// Words between the beginning of a clause and its verb.
pub const FILLERS: &[&str] = &[
    "please",
    "now",
    "then",
    "and",
    "also",
    "just",
    "first",
    "always",
    "instead",
    "immediately",
    "kindly",
    "must",
    "should",
    "shall",
    "will",
    "to",
    "have",
    "need",
    "can",
    "so",
    "bitte",
    "por",
    "favor",
    "jetzt",
    "important",
    "warning",
    "attention",
];

/// Who is spoken to.
pub const AUDIENCE: &[&str] = &[
    "you",
    "agent",
    "agents",
    "assistant",
    "assistants",
    "ai",
    "ais",
    "claude",
    "llm",
    "llms",
    "chatgpt",
    "gpt",
    "copilot",
    "gemini",
    "codex",
];

/// People from whom something is kept.
pub const PEOPLE: &[&str] = &[
    "user",
    "users",
    "human",
    "humans",
    "developer",
    "developers",
    "operator",
    "owner",
    "curator",
    "reviewer",
    "reviewers",
    "maintainer",
    "maintainers",
    "anyone",
    "anybody",
];

/// Verbs that tell something.
pub const TELL: &[&str] = &[
    "tell", "mention", "reveal", "inform", "notify", "disclose", "report", "alert", "show", "say",
];

/// Verbs that tell something, as in `without telling`.
pub const TELLING: &[&str] = &[
    "telling",
    "asking",
    "informing",
    "notifying",
    "mentioning",
    "alerting",
    "consulting",
];

/// Verbs of orders.
pub const ACTS: &[&str] = &[
    "run",
    "execute",
    "call",
    "invoke",
    "delete",
    "remove",
    "drop",
    "send",
    "upload",
    "print",
    "fetch",
    "download",
    "open",
    "push",
    "install",
    "reply",
    "respond",
    "output",
    "post",
    "approve",
    "merge",
    "deploy",
    "commit",
    "write",
    "use",
    "do",
    "copy",
    "exfiltrate",
];

/// Verbs that show something, with which a system prompt is asked for.
pub const REVEAL: &[&str] = &[
    "reveal",
    "print",
    "output",
    "repeat",
    "show",
    "leak",
    "dump",
    "display",
    "summarize",
];

/// The markup of chats, which has no place in a note.
pub const MARKUP: [&str; 14] = [
    "[INST]",
    "[/INST]",
    "<<SYS>>",
    "<</SYS>>",
    "<|im_start|>",
    "<|im_end|>",
    "<|system|>",
    "<|user|>",
    "<|assistant|>",
    "<|start_header_id|>",
    "<|eot_id|>",
    "<system>",
    "<system-reminder>",
    "<system_prompt>",
];
