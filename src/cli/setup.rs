//! `setup`: from nothing to the first answer. Finds stores and clients, asks what to do with each,
//! and tries one query. It does only what other commands do, and says which. It can run again
//! without doing anything twice.

use std::sync::Arc;

use serde_json::{Value, json};

use super::args::{EntryArgs, SetupArgs};
use super::connect::{Planned, installed};
use super::render::count;
use super::scopes::discover::{free_name, line, shown, told};
use super::scopes::offer::{self, Answer};
use super::{machine, prompt, write_err, write_out, write_plain};
use crate::cli::error::CliError;
use crate::config::Config;
use crate::connect::Client;
use crate::recogniser::{Found, Support};
use crate::scope::{Registry, Scope, same};
use crate::service::{Error, Service};
use ack_api::memory::StatusFilter;
use ack_api::{Diagnostic, QueryRequest};

/// Maximum titles to search for a word to try.
const TITLES: i64 = 20;
/// The minimum length of a word to try.
const LETTERS: usize = 5;

/// How questions are answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    /// Ask the user.
    Ask,
    /// Take the safe answer.
    Safe,
    /// Write nothing.
    Show,
}

/// One run: prints as it goes, or prints JSON at the end.
struct Setup<'a> {
    config: &'a Config,
    manner: Manner,
    json: bool,
    /// The failures so far. They do not stop the run.
    failed: Vec<CliError>,
}

/// Runs `setup`.
pub fn run(config: &Config, args: &SetupArgs, json: bool) -> Result<(), CliError> {
    let manner = match (args.dry_run, args.yes) {
        (true, _) => Manner::Show,
        (false, true) => Manner::Safe,
        (false, false) if prompt::is_possible() && !json => Manner::Ask,
        (false, false) => {
            return Err(CliError::Request(Error::InvalidArgument {
                argument: "--yes".to_owned(),
                value: "missing where nobody can be asked".to_owned(),
                allowed: "--yes (stores are added to be reviewed first, installed clients are \
                          connected), or --dry-run (nothing is written)"
                    .to_owned(),
                nearest: Vec::new(),
                example: Some("ack-memory setup --yes".to_owned()),
            }));
        }
    };
    let mut setup = Setup {
        config,
        manner,
        json,
        failed: Vec::new(),
    };
    let stores = setup.stores()?;
    let clients = setup.clients()?;
    let query = setup.query()?;
    let failed = setup.failed;
    if json {
        let failed: Vec<_> = failed.iter().map(Diagnostic::body).collect();
        let answer =
            json!({ "stores": stores, "clients": clients, "query": query, "failed": failed });
        return write_out(&(serde_json::to_string_pretty(&answer).unwrap_or_default() + "\n"));
    }
    failed.into_iter().next().map_or(Ok(()), Err)
}

impl Setup<'_> {
    fn say(&self, text: &str) -> Result<(), CliError> {
        if self.json { Ok(()) } else { write_plain(text) }
    }

    fn scopes(&self) -> Vec<Arc<Scope>> {
        Registry::new(self.config).discover().scopes
    }

    /// Handles each store that can be served, and mentions the others.
    fn stores(&mut self) -> Result<Vec<Value>, CliError> {
        let home = self.config.home.as_deref();
        let found = machine::stores(self.config);
        let mut tell = Vec::new();
        self.say("Stores\n")?;
        let elsewhere = self.scopes().into_iter().filter(|scope| {
            !found
                .iter()
                .any(|found| same::is_same(scope.store.path(), &found.path))
        });
        for scope in elsewhere {
            let path = shown(scope.store.path(), home);
            self.say(&format!(
                "  scope `{}`, {path}: there already\n",
                scope.name
            ))?;
        }
        for store in &found {
            let mut told = told(store, &self.scopes());
            if store.kind.support() == Support::Served {
                let (action, command) = self.store(store)?;
                if let Some(told) = told.as_object_mut() {
                    told.insert("action".to_owned(), json!(action));
                    told.insert("command".to_owned(), json!(command));
                }
            }
            tell.push(told);
        }
        if tell.is_empty() && self.scopes().is_empty() {
            self.say("  none found; `ack-memory import FILE --scope NAME` reads JSON lines\n")?;
        }
        Ok(tell)
    }

    /// Handles one store. Returns what was done, and the command that does it.
    fn store(&mut self, found: &Found) -> Result<(&'static str, Option<String>), CliError> {
        let scopes = self.scopes();
        self.say(&format!("  {}\n", line(found, self.config.home.as_deref())))?;
        if let Some(scope) = same::scope_with(&scopes, &found.path) {
            self.say(&format!("    there already, as scope `{}`\n", scope.name))?;
            return Ok(("there", None));
        }
        if found.problem.is_some() {
            self.say("    left out\n")?;
            return Ok(("left_out", None));
        }
        let name = free_name(found, &scopes);
        let answer = match self.manner {
            Manner::Ask => offer::ask(found).unwrap_or(Answer::Skip),
            Manner::Safe | Manner::Show => Answer::Review,
        };
        if answer == Answer::Skip {
            return Ok(("skipped", None));
        }
        let command = offer::command(found, &name, answer);
        if self.manner == Manner::Show {
            self.say(&format!("    would run: {command}\n"))?;
            return Ok(("would_add", Some(command)));
        }
        match offer::add(self.config, found, &name, answer) {
            Ok(()) => {
                self.say(&format!("    added: {command}\n"))?;
                Ok(("added", Some(command)))
            }
            Err(error) => {
                self.fail(error)?;
                Ok(("failed", Some(command)))
            }
        }
    }

    /// Handles each installed client.
    fn clients(&mut self) -> Result<Vec<Value>, CliError> {
        self.say("\nClients\n")?;
        let mut tell = Vec::new();
        for client in installed(self.config)? {
            let command = format!("ack-memory connect {} --yes", client.name());
            let action = match Planned::new(self.config, client, &EntryArgs::default()) {
                Ok(planned) => self.client(client, &planned, &command)?,
                Err(error) => {
                    self.say(&format!("  {}\n", client.name()))?;
                    self.fail(error)?;
                    "failed"
                }
            };
            tell.push(json!({ "client": client.name(), "action": action, "command": command }));
        }
        if tell.is_empty() {
            self.say("  none found; `ack-memory connect --help` lists those that are known\n")?;
        }
        Ok(tell)
    }

    fn client(
        &mut self,
        client: Client,
        planned: &Planned,
        command: &str,
    ) -> Result<&'static str, CliError> {
        let name = client.name();
        if planned.changes.is_empty() {
            self.say(&format!("  {name}: connected already\n"))?;
            return Ok("there");
        }
        let home = self.config.home.as_deref();
        let files: Vec<String> = planned
            .changes
            .iter()
            .map(|change| shown(&change.path, home))
            .collect();
        self.say(&format!("  {name}: {}\n", files.join(", ")))?;
        if !self.json {
            for warning in &planned.warnings {
                write_err(&prompt::wrapped("    ", warning));
            }
        }
        if self.manner == Manner::Show {
            self.say(&format!("    would run: {command}\n"))?;
            return Ok("would_connect");
        }
        if self.manner == Manner::Ask && !self.agrees(planned)? {
            return Ok("skipped");
        }
        if let Err(error) = planned.carry_out() {
            self.fail(error)?;
            return Ok("failed");
        }
        self.say(&format!("    connected: {command}\n"))?;
        if let Some(step) = &planned.next_step {
            self.say(&format!("    {step}\n"))?;
        }
        Ok("connected")
    }

    /// Asks whether to connect a client, and shows the change on request.
    fn agrees(&self, planned: &Planned) -> Result<bool, CliError> {
        loop {
            let keys = [('y', "yes"), ('n', "no"), ('d', "the difference")];
            let name = planned.client.name();
            let question = format!("    connect {name}? (y)es, (n)o, show the (d)ifference");
            match prompt::choose(&question, &keys) {
                Some('y') => return Ok(true),
                Some('d') => {
                    for change in &planned.changes {
                        self.say(&change.shown())?;
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
            Ok(hit) => hit,
            Err(error) => {
                self.fail(error.into())?;
                return Ok(Value::Null);
            }
        };
        let Some(hit) = hit else {
            self.say("  the stores hold no memories yet\n")?;
            return Ok(Value::Null);
        };
        let all = if hit.approved { "" } else { " --all" };
        let command = format!("ack-memory query {}{all}", hit.word);
        let found = count(hit.total, "memory");
        self.say(&format!(
            "  {command}\n    {found}, the best in scope `{}`: {}\n",
            hit.scope, hit.title
        ))?;
        if !hit.approved {
            self.say(&format!(
                "    None is approved yet, so agents see none. To look at each of them:\n    \
                 ack-memory review\n    To vouch for all of them as they are:\n    \
                 ack-memory scopes set {} unreviewed=approved\n",
                crate::connect::quoted(&hit.scope)
            ))?;
        }
        let ask = format!("What do our memories say about {}?", hit.word);
        let when = if hit.approved { "Now" } else { "Then" };
        self.say(&format!(
            "\n{when} ask your agent, in a new session: \"{ask}\"\n"
        ))?;
        Ok(json!({ "command": command, "total": hit.total, "approved": hit.approved, "ask": ask }))
    }

    /// Prints and records an error. The run continues.
    fn fail(&mut self, error: CliError) -> Result<(), CliError> {
        self.say(&format!("    failed: {error}\n"))?;
        self.failed.push(error);
        Ok(())
    }
}

/// A word with at least one result.
struct Hit {
    word: String,
    total: u64,
    scope: String,
    title: String,
    approved: bool,
}

/// The first word from a recent title that has results: among approved memories if there are any,
/// else among all.
fn first_hit(service: &Service) -> Result<Option<Hit>, Error> {
    for status in [StatusFilter::Approved, StatusFilter::All] {
        let newest = service.query_memories(&QueryRequest {
            status: Some(status),
            limit: Some(TITLES),
            ..QueryRequest::default()
        })?;
        let titles = newest.results.iter().map(|result| result.title.as_str());
        let words = titles.filter_map(|title| {
            title
                .split(|letter: char| !letter.is_alphanumeric())
                .filter(|word| word.chars().count() >= LETTERS)
                .max_by_key(|word| word.chars().count())
        });
        for word in words {
            let word = word.to_lowercase();
            let answer = service.query_memories(&QueryRequest {
                query: Some(word.clone()),
                status: Some(status),
                limit: Some(1),
                ..QueryRequest::default()
            })?;
            if let Some(best) = answer.results.first() {
                return Ok(Some(Hit {
                    word,
                    total: answer.total,
                    scope: best.scope.clone(),
                    title: best.title.clone(),
                    approved: status == StatusFilter::Approved,
                }));
            }
        }
    }
    Ok(None)
}
