//! `setup`: from nothing to the first answer. Finds stores and clients, asks what to do with each,
//! and tries one query. It does only what other commands do, and says which. It can run again
//! without doing anything twice.

use std::cmp::Reverse;
use std::sync::Arc;

use serde_json::{Value, json};

use super::args::{EntryArgs, SetupArgs};
use super::command::{SHELL, command};
use super::connect::{ConnectPlan, carry_out, installed, places, unreviewed};
use super::output::{json_with, write_err, write_json, write_plain};
use super::render::{count, lines};
use super::scopes::add;
use super::scopes::found_store::{self, Answer, TrustedCounts, free_name, store_json, store_line};
use super::scopes::team::Team;
use super::screen::Screen;
use super::{prompt, user};
use crate::cli::error::CliError;
use ack_api::memory::StatusFilter;
use ack_api::{Diagnostic, MemoryHit, QueryRequest, hint, text};
use ack_connect::file::FileAction;
use ack_connect::recogniser::{FoundStore, Support};
use ack_connect::unreviewed::Unreviewed;
use ack_connect::{Client, quoted};
use ack_service::config::Config;
use ack_service::scope::{KnownScopes, Registry, Scope};
use ack_service::{Error, Service};
use ack_sys::files::with_tilde;
use unicode_segmentation::UnicodeSegmentation;

const MAX_TITLES: i64 = 20;
const MIN_WORD_LETTERS: usize = 5;
/// A word that more than one in so many memories has says little about them.
const MIN_SHARE: u64 = 20;
const MAX_WORDS: usize = 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerMode {
    Ask,
    Defaults,
    Show,
}

/// One run, which prints as it goes, or prints JSON at the end.
struct Setup<'a> {
    config: &'a Config,
    mode: AnswerMode,
    json: bool,
    /// The answer about all stores that follow.
    about_all: Option<Answer>,
    /// They do not stop the run.
    failed: Vec<CliError>,
    /// What else puts memories into the clients' sessions.
    others: Vec<(Client, Unreviewed)>,
    team: Option<Team>,
}

pub fn mode(args: &SetupArgs, json: bool) -> Result<AnswerMode, CliError> {
    if args.dry_run {
        Ok(AnswerMode::Show)
    } else if args.yes {
        Ok(AnswerMode::Defaults)
    } else if prompt::is_possible() && !json {
        Ok(AnswerMode::Ask)
    } else {
        let message = "no questions can be asked here: pass `--yes`, or `--dry-run`";
        let hint = "`--yes` adds stores for review and connects installed clients; \
                    `--dry-run` writes nothing";
        Err(CliError::usage("--yes", message).with_hint(hint).with_example("setup --yes"))
    }
}

pub fn run(config: &Config, mode: AnswerMode, json: bool) -> Result<(), CliError> {
    let mut setup = Setup {
        config,
        mode,
        json,
        about_all: None,
        failed: Vec::new(),
        others: others(config)?,
        team: Team::of(config),
    };
    let stores = setup.stores()?;
    let unreviewed = setup.unreviewed()?;
    let clients = setup.clients()?;
    let query = setup.query()?;
    if json {
        let failed: Vec<_> = setup.failed.iter().map(Diagnostic::body).collect();
        return write_json(&json!({
            "stores": stores, "clients": clients, "unreviewed": unreviewed, "query": query,
            "failed": failed,
        }));
    }
    setup.failed.into_iter().next().map_or(Ok(()), Err)
}

impl Setup<'_> {
    fn say(&self, text: &str) -> Result<(), CliError> {
        if self.json {
            return Ok(());
        }
        let indent: String = text.chars().take_while(|letter| *letter == ' ').collect();
        let (screen, rest) = (Screen::of_output(), format!("{indent}  "));
        let wrapped = text.lines().map(|line| lines(&screen, line.trim_start(), &indent, &rest));
        write_plain(&wrapped.map(|lines| lines.join("\n") + "\n").collect::<String>())
    }

    /// Prints a text followed by a command. A long one continues on the next line, as in a shell.
    fn say_command(&self, text: &str, command: &str) -> Result<(), CliError> {
        if self.json {
            return Ok(());
        }
        let mut screen = Screen::of_output();
        // A quoted word cannot be broken.
        let width = screen.width.filter(|_| !command.contains('\''));
        screen.width = width.map(|width| width.saturating_sub(2));
        let line = format!("{}{command}", text.trim_start());
        let indent = " ".repeat(text.len() - text.trim_start().len());
        let rest = format!("{indent}  ");
        write_plain(&(lines(&screen, &line, &indent, &rest).join(" \\\n") + "\n"))
    }

    fn scopes(&self) -> Vec<Arc<Scope>> {
        Registry::new(self.config).discover().scopes
    }

    fn stores(&mut self) -> Result<Vec<Value>, CliError> {
        let home = self.config.home.as_deref();
        let found = user::stores(self.config);
        let mut entries = Vec::new();
        self.say("Stores\n")?;
        let scopes = self.scopes();
        let mut known = KnownScopes::new(&scopes);
        let mut shown = KnownScopes::default();
        for store in &found {
            shown.add("", &store.path);
        }
        let others = scopes.iter().filter(|scope| shown.with_store(scope.store.path()).is_none());
        let others = others.map(|scope| {
            let path = with_tilde(scope.store.path(), home);
            format!("  scope `{}`, {path}: there already\n", scope.name)
        });
        self.say(&Screen::of_output().fold(others.collect(), "scopes | less"))?;
        for store in &found {
            let mut entry = store_json(store, &known);
            match store.kind.support() {
                Support::Served => {
                    let (action, command) = self.store(store, &mut known)?;
                    entry = json_with(&entry, json!({ "action": action, "command": command }));
                }
                Support::Import => {
                    self.say(&format!("  {}\n", store_line(store, home)))?;
                    let advice = hint::render(&[store.advice()], &SHELL).unwrap_or_default();
                    self.say(&format!("    to use it: {advice}\n"))?;
                }
                Support::Reference => {}
            }
            entries.push(entry);
        }
        if entries.is_empty() && scopes.is_empty() {
            self.say("  none found\n")?;
            self.say_command("  to look at sample memories: ", &command("demo"))?;
            self.say_command("  to write one yourself: ", &command("add"))?;
            let import = command("import FILE --scope NAME");
            self.say_command("  to import JSON lines: ", &import)?;
            self.say_command("  to serve another store: ", &command("scopes add --help"))?;
            self.say("  docs/memories.md describes the stores that can be served\n")?;
        }
        Ok(entries)
    }

    /// Handles one store. Returns what was done, and the command that does it.
    fn store(
        &mut self,
        found: &FoundStore,
        known: &mut KnownScopes,
    ) -> Result<(&'static str, Option<String>), CliError> {
        self.say(&format!("  {}\n", store_line(found, self.config.home.as_deref())))?;
        if let Some(scope) = known.with_store(&found.path) {
            self.say(&format!("    already exists as scope `{scope}`\n"))?;
            return Ok(("there", None));
        }
        if found.problem.is_some() {
            self.say("    left out\n")?;
            return Ok(("left_out", None));
        }
        if self.others.iter().any(|(_, other)| other.is_of(found.kind.title())) {
            self.say("    it also shows them to agents itself, unreviewed: see below\n")?;
        }
        let team = self.team.clone().filter(|team| team.has(found));
        let team = team.as_ref();
        let name = free_name(found, known, team);
        let answer = match (self.mode, team) {
            (AnswerMode::Ask, _) => self.ask(found, team)?,
            (_, None) => Answer::Review,
            // Nobody joins without having been asked.
            (_, Some(_)) => {
                let joining = found_store::add_args(found, &name, Answer::Join, team);
                let command = found_store::command(&joining);
                self.say_command("    to join: ", &command)?;
                return Ok(("not_joined", Some(command)));
            }
        };
        if answer == Answer::Skip {
            return Ok(("skipped", None));
        }
        let args = found_store::add_args(found, &name, answer, team);
        let command = found_store::command(&args);
        if self.mode == AnswerMode::Show {
            self.say_command("    would run: ", &command)?;
            if found.approved.is_none() && !self.json {
                let counts = TrustedCounts::of(found)?.phrases("trust", "hold back").join(" ");
                self.say(&format!("    with `--unreviewed approved`: {counts}\n"))?;
            }
            known.add(&name, &found.path);
            return Ok(("would_add", Some(command)));
        }
        let planned = add::plan(self.config, known, &args);
        match planned.and_then(|planned| planned.write()) {
            Ok(()) => {
                known.add(&name, &found.path);
                self.say_command("    added: ", &command)?;
                Ok(("added", Some(command)))
            }
            Err(error) => Ok((self.fail(error)?, Some(command))),
        }
    }

    /// The answer about a store: what was answered about all that follow, or else asks.
    fn ask(&mut self, found: &FoundStore, team: Option<&Team>) -> Result<Answer, CliError> {
        if let Some(team) = team {
            let is_joined = self.about_all != Some(Answer::Skip) && team.ask();
            return Ok(if is_joined { Answer::Join } else { Answer::Skip });
        }
        match self.about_all {
            // It has a review status of its own, which says what agents see.
            Some(Answer::Trust) if found.approved.is_some() => return Ok(Answer::Review),
            Some(Answer::Trust) => {
                let counts = TrustedCounts::of(found)?.phrases("trusted", "held back").join(" ");
                self.say(&format!("    {counts}\n"))?;
                return Ok(Answer::Trust);
            }
            Some(answer) => return Ok(answer),
            None => {}
        }
        let (answer, is_for_all) = found_store::ask(found, self.config.home.as_deref())?;
        self.about_all = Some(answer).filter(|_| is_for_all);
        Ok(answer)
    }

    fn clients(&mut self) -> Result<Vec<Value>, CliError> {
        self.say("\nClients\n")?;
        let mut entries = Vec::new();
        for client in installed(self.config)? {
            let command = command(&format!("connect {} --yes", client.name()));
            let entry = EntryArgs::default();
            let action = match ConnectPlan::new(self.config, client, &entry, FileAction::Put) {
                Ok(planned) => self.client(client, &planned, &command)?,
                Err(error) => {
                    self.say(&format!("  {}\n", client.name()))?;
                    self.fail(error)?
                }
            };
            entries.push(json!({ "client": client.name(), "action": action, "command": command }));
        }
        if entries.is_empty() {
            let list = command("connect --help");
            self.say(&format!("  none found; `{list}` lists the known ones\n"))?;
        }
        Ok(entries)
    }

    /// Says what else puts memories into the clients' sessions that nobody reviewed, and offers to
    /// switch it off.
    fn unreviewed(&mut self) -> Result<Vec<Value>, CliError> {
        let others = std::mem::take(&mut self.others);
        if !others.is_empty() {
            self.say("\nAlso in their sessions, without review\n")?;
        }
        let mut entries = Vec::new();
        for (client, other) in others {
            self.say(&format!("  {}: {}\n", client.name(), other.described()))?;
            let action = self.switch_off(client, &other)?;
            entries.push(json!({
                "client": client.name(), "what": other.what, "advice": other.advice,
                "tokens": other.tokens, "action": action,
            }));
        }
        Ok(entries)
    }

    /// Offers to switch something off, with the change shown. Returns what was done.
    fn switch_off(&mut self, client: Client, other: &Unreviewed) -> Result<&'static str, CliError> {
        if let Some(advice) = &other.advice {
            self.say(&format!("    {advice}\n"))?;
        }
        if !other.can_switch_off() {
            return Ok("named");
        }
        if self.mode != AnswerMode::Ask {
            let setup = command("setup");
            self.say(&format!("    left on; `{setup}` at a terminal offers to switch it off\n"))?;
            return Ok("left_on");
        }
        let change = match other.switch_off(client, &places(self.config)?) {
            Ok(Some(change)) => change,
            Ok(None) => return Ok("left_on"),
            Err(error) => return self.fail(error.into()),
        };
        write_plain(&change.shown())?;
        if !prompt::confirm("    switch it off?") {
            return Ok("left_on");
        }
        if let Err(error) = carry_out(&[change]) {
            return self.fail(error);
        }
        self.say("    switched off, from the next session on\n")?;
        let back = command(&format!("disconnect {}", client.name()));
        self.say_command("    the way back: ", &back)?;
        Ok("switched_off")
    }

    fn client(
        &mut self,
        client: Client,
        planned: &ConnectPlan,
        command: &str,
    ) -> Result<&'static str, CliError> {
        let name = client.name();
        if planned.changes.is_empty() {
            self.say(&format!("  {name}: already connected\n"))?;
            return Ok("there");
        }
        let home = self.config.home.as_deref();
        let files = planned.changes.iter().map(|change| with_tilde(&change.path, home));
        self.say(&format!("  {name}: {}\n", files.collect::<Vec<_>>().join(", ")))?;
        if !self.json {
            for warning in &planned.warnings {
                write_err(&prompt::wrapped("    ", warning));
            }
        }
        if self.mode == AnswerMode::Show {
            self.say_command("    would run: ", command)?;
            return Ok("would_connect");
        }
        if self.mode == AnswerMode::Ask && !self.confirm_connect(planned)? {
            return Ok("skipped");
        }
        if let Err(error) = carry_out(&planned.changes) {
            return self.fail(error);
        }
        self.say_command("    connected: ", command)?;
        if let Some(step) = &planned.next_step {
            self.say(&format!("    {step}\n"))?;
        }
        Ok("connected")
    }

    fn confirm_connect(&self, planned: &ConnectPlan) -> Result<bool, CliError> {
        loop {
            let keys = [('y', "yes"), ('n', "no"), ('d', "the difference")];
            let name = planned.client.name();
            let question = format!("    connect {name}? (y)es, (n)o, show the (d)ifference");
            match prompt::choose(&question, &keys) {
                Some('y') => return Ok(true),
                Some('d') => {
                    for change in &planned.changes {
                        write_plain(&change.shown())?;
                    }
                }
                _ => return Ok(false),
            }
        }
    }

    /// Runs one query on the user's own stores, with a word that certainly occurs, and suggests
    /// what to ask an agent.
    fn query(&mut self) -> Result<Value, CliError> {
        if self.scopes().is_empty() {
            return Ok(Value::Null);
        }
        self.say("\nA first query\n")?;
        let service = Service::new(self.config.clone());
        let tried = first_hit(&service);
        service.close();
        let hit = match tried {
            Ok(Some(hit)) => hit,
            Ok(None) => {
                self.say("  the stores hold no memories yet\n")?;
                return Ok(Value::Null);
            }
            Err(error) => {
                self.fail(error.into())?;
                return Ok(Value::Null);
            }
        };
        let all = if hit.approved { "" } else { " --all" };
        let command = command(&format!("query {}{all}", hit.word));
        let (found, scope) = (count(hit.total, "memory"), &hit.best.scope);
        self.say_command("  ", &command)?;
        self.say(&format!("    {found}, the best in scope `{scope}`: {}\n", hit.best.title))?;
        if !hit.approved {
            self.say("    None is approved yet, so agents get none of them here.\n")?;
            self.say("    To review them, heap by heap:\n")?;
            self.say_command("    ", &self::command("review"))?;
            let trust = format!("scopes set {} unreviewed=approved", quoted(scope));
            self.say("    To trust all but what is flagged:\n")?;
            self.say_command("    ", &self::command(&trust))?;
        }
        // A word alone may say nothing to a person; the title of what is found does.
        let title = text::line(hit.best.title.trim_end_matches('.'), 80);
        let ask = format!("What do our memories say about \"{}\"?", title);
        let when = if hit.approved { "Now" } else { "Then" };
        self.say(&format!("\n{when} ask your agent, in a new session: {ask}\n"))?;
        Ok(json!({ "command": command, "total": hit.total, "approved": hit.approved, "ask": ask }))
    }

    /// Prints and records an error. Returns what was done.
    fn fail(&mut self, error: CliError) -> Result<&'static str, CliError> {
        let body = error.body_for(&SHELL);
        self.say(&format!("    failed: {}\n", body.message))?;
        if let Some(hint) = body.hint {
            self.say(&format!("    {hint}\n"))?;
        }
        self.failed.push(error);
        Ok("failed")
    }
}

fn others(config: &Config) -> Result<Vec<(Client, Unreviewed)>, CliError> {
    let places = places(config)?;
    let mut others = Vec::new();
    for client in installed(config)? {
        others.extend(unreviewed(config, client, &places).into_iter().map(|other| (client, other)));
    }
    Ok(others)
}

struct Hit {
    word: String,
    total: u64,
    best: MemoryHit,
    approved: bool,
}

/// The longest word of a recent title that few memories have: among approved memories if there are
/// any, else among all.
fn first_hit(service: &Service) -> Result<Option<Hit>, Error> {
    for status in [StatusFilter::Approved, StatusFilter::All] {
        let ask = |query, limit| {
            let status = Some(status);
            let request = QueryRequest { query, status, limit: Some(limit), ..Default::default() };
            service.query_memories(&request)
        };
        let newest = ask(None, MAX_TITLES)?;
        let most = (newest.total / MIN_SHARE).max(1);
        for result in &newest.results {
            let length = |word: &&str| word.chars().count();
            let words = result.title.unicode_words();
            let words = words.filter(|word| length(word) >= MIN_WORD_LETTERS);
            let mut words: Vec<&str> = words.take(MAX_WORDS).collect();
            words.sort_by_key(|word| Reverse(length(word)));
            let mut frequent = None;
            for word in words.into_iter().map(str::to_lowercase) {
                let answer = ask(Some(word.clone()), 1)?;
                let Some(best) = answer.results.into_iter().next() else {
                    continue;
                };
                let approved = status == StatusFilter::Approved;
                let hit = Hit { word, total: answer.total, best, approved };
                if hit.total <= most {
                    return Ok(Some(hit));
                }
                frequent = frequent.or(Some(hit));
            }
            if frequent.is_some() {
                return Ok(frequent);
            }
        }
    }
    Ok(None)
}
