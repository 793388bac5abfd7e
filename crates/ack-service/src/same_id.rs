//! Which memory is meant if several scopes have the same id, and the note about the others.
//!
//! An approved memory comes before one that waits for review, then the current scope before others,
//! then scopes by name. An address (`memory://scope/NAME/memory/ID`) names exactly one of them.

use std::sync::Arc;

use ack_api::memory::{Status, StatusFilter, fold_name};
use ack_api::uri::Address;
use ack_api::{Given, Hint, Note, NoteKind, text};
use ack_search::inverted::Index;
use ack_search::inverted::docs::Doc;
use ack_search::postings::DocId;

use crate::error::Error;
use crate::scope::Scope;

const MAX_NAMED: usize = 5;
const MAX_SHOWN: usize = 200;

#[derive(Debug, Clone, Copy)]
pub struct Holder<'a> {
    pub number: usize,
    pub scope: &'a str,
    pub status: Status,
    /// The memory's number; `None` for a rejected one, which is not indexed.
    pub doc: Option<DocId>,
}

/// The scopes that contain a memory with this id, the one that is meant first.
pub fn holders<'a>(
    indexes: impl Iterator<Item = (&'a str, &'a Index)>,
    own: Option<&str>,
    id: &str,
    filter: StatusFilter,
) -> Vec<Holder<'a>> {
    let id = text::id(id);
    let mut holders: Vec<Holder<'a>> = Vec::new();
    for (number, (scope, index)) in indexes.enumerate() {
        if let Some((doc, Doc { status, .. })) = index.find_typed(&id) {
            holders.push(Holder { number, scope, status: *status, doc: Some(doc) });
        } else if index.is_rejected(&id) {
            holders.push(Holder { number, scope, status: Status::Rejected, doc: None });
        }
    }
    holders.sort_by_key(|holder| {
        (
            !filter.allows(holder.status),
            !StatusFilter::Approved.allows(holder.status),
            holder.doc.is_none(),
            Some(holder.scope) != own,
            holder.number,
        )
    });
    holders
}

pub fn address(text: &str) -> Option<(String, String)> {
    match Address::parse(text)? {
        Address::Memory { scope, id } => Some((scope, id)),
        _ => None,
    }
}

/// Rejects an address of another scope than the argument `scope` names.
pub fn check_scope(given: &str, scope: Option<&str>, searched: &[Arc<Scope>]) -> Result<(), Error> {
    let (Some(scope), Some((named, id))) = (scope, address(given)) else {
        return Ok(());
    };
    let folded = fold_name(&named);
    if searched.iter().any(|it| fold_name(&it.name) == folded) {
        return Ok(());
    }
    Err(Error::OtherScope {
        address: text::line(given, MAX_SHOWN),
        named: text::line(&named, MAX_SHOWN),
        id: text::id(&id),
        scope: text::line(scope, MAX_SHOWN),
    })
}

/// The scopes that contain an id too, with its status in each.
pub type Others = Vec<(String, Status)>;

/// The note about ids that are in other scopes too.
pub fn note<'a>(ids: impl Iterator<Item = (&'a str, &'a [(String, Status)])>) -> Option<Note> {
    let shared = ids.filter(|(_, others)| !others.is_empty()).map(|(id, others)| {
        let named = others.iter().take(MAX_NAMED);
        let named: Vec<String> =
            named.map(|(scope, status)| format!("`{scope}` ({status})")).collect();
        let more = others.len() - named.len();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("`{}` is in other scopes too: {}{more}", text::id(id), named.join(", "))
    });
    let mut parts: Vec<String> = shared.collect();
    let more = parts.len().saturating_sub(MAX_NAMED);
    parts.truncate(MAX_NAMED);
    if more > 0 {
        parts.push(format!("and so are {more} more ids"));
    }
    let choose = Hint::pass([Given::any("scope")], "to choose one");
    (!parts.is_empty()).then(|| Note::new(NoteKind::SameId, parts.join("; ")).with(choose))
}

/// The holders of an id other than the one that is meant, if a caller may ask for them.
pub fn others(holders: &[Holder<'_>], chosen_scope: &str) -> Others {
    let others = holders.iter().filter(|it| it.doc.is_some() && it.scope != chosen_scope);
    others.map(|holder| (holder.scope.to_owned(), holder.status)).collect()
}
