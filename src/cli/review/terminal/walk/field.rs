//! Questions that take more than a key: a filter, a reason, a day, what to do before leaving.

use ack_desk::choice::{Choice, count_text, reason};

use super::{Key, Walk, Wish};
use crate::cli::args::day::parse_later_day;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asked {
    /// Which memories to show. Each letter counts at once.
    Filter,
    Reason(Vec<usize>),
    /// Until when this one is put off.
    Day(usize),
    Leave,
}

/// An open question, and what was typed so far.
#[derive(Debug, Clone)]
pub struct Field {
    pub asked: Asked,
    pub text: String,
}

impl Field {
    pub fn question(&self, unsaved: usize) -> String {
        match &self.asked {
            Asked::Filter => "filter: ".to_owned(),
            Asked::Reason(_) => "why? 1-9, words, Enter for none, Esc back: ".to_owned(),
            Asked::Day(_) => "snooze: d a day, w a week, m a month, or a date: ".to_owned(),
            Asked::Leave => {
                let decisions = count_text(unsaved, "decision", "decisions");
                format!("Save {decisions}? y or Enter save · n discard · Esc stay ")
            }
        }
    }
}

impl Walk<'_> {
    pub(super) fn ask(&mut self, asked: Asked) {
        let text = match asked {
            Asked::Filter => self.view.filter.clone(),
            _ => String::new(),
        };
        self.field = Some(Field { asked, text });
    }

    /// Answers the open question with a whole line.
    pub fn answer(&mut self, line: &str) -> Wish {
        let Some(field) = &mut self.field else {
            return Wish::Nothing;
        };
        line.clone_into(&mut field.text);
        match field.asked {
            Asked::Leave => {
                return self.leave_key(&match line.to_lowercase().as_str() {
                    "" | "y" | "yes" | "c" => Key::Enter,
                    "n" | "no" => Key::Char('n'),
                    _ => Key::Other,
                });
            }
            Asked::Filter => self.set_filter(line),
            Asked::Reason(_) | Asked::Day(_) => {}
        }
        self.accept();
        Wish::Nothing
    }

    pub(super) fn field_key(&mut self, key: &Key) -> Wish {
        let Some(field) = &mut self.field else {
            return Wish::Nothing;
        };
        if field.asked == Asked::Leave {
            return self.leave_key(key);
        }
        match key {
            Key::Escape => {
                let field = self.field.take();
                if field.is_some_and(|field| field.asked == Asked::Filter) {
                    self.set_filter("");
                }
            }
            Key::Enter => self.accept(),
            Key::Backspace => drop(field.text.pop()),
            Key::Paste(pasted) => field.text.push_str(&ack_api::text::line(pasted, 500)),
            Key::Char(letter) => {
                let is_first = field.text.is_empty();
                field.text.push(*letter);
                let is_answer = match field.asked {
                    Asked::Reason(_) => letter.is_ascii_digit() && *letter != '0',
                    Asked::Day(_) => matches!(letter, 'd' | 'w' | 'm'),
                    _ => false,
                };
                if is_first && is_answer {
                    self.accept();
                }
            }
            _ => {}
        }
        if let Some(Field { asked: Asked::Filter, text }) = &self.field {
            self.set_filter(&text.clone());
        }
        Wish::Nothing
    }

    /// Does what was asked with what was typed.
    fn accept(&mut self) {
        let Some(field) = self.field.take() else {
            return;
        };
        let typed = field.text.trim();
        let done = match &field.asked {
            Asked::Leave => Ok(()),
            Asked::Filter => self.view.complaint().map_or(Ok(()), Err),
            Asked::Reason(_) if is_stray_key(typed) => {
                Err(format!("`{typed}` is not a reason; nothing was decided"))
            }
            Asked::Reason(numbers) => self.choose(numbers, Choice::Reject, reason(typed)),
            Asked::Day(number) => later_day(typed)
                .and_then(|until| self.choose(&[*number], Choice::PutOff { until }, None)),
        };
        self.complain_if(done);
    }

    fn leave_key(&mut self, key: &Key) -> Wish {
        match key {
            Key::Char('y' | 'c') | Key::Enter => {
                self.save();
                if self.desk.lock().unwritten() == 0 {
                    return Wish::Leave;
                }
                self.said.text.push_str(" · Ctrl+C keeps the decisions in a file");
            }
            Key::Char('n') => {
                let mut desk = self.desk.lock();
                while !desk.take_back(None).is_empty() {}
                return Wish::Leave;
            }
            Key::Escape => self.field = None,
            _ => {}
        }
        Wish::Nothing
    }
}

/// Whether it is a single letter: a key that was meant for the next card.
fn is_stray_key(typed: &str) -> bool {
    let mut letters = typed.chars();
    matches!((letters.next(), letters.next()), (Some(letter), None) if !letter.is_ascii_digit())
}

fn later_day(typed: &str) -> Result<String, String> {
    parse_later_day(match typed {
        "d" => "1d",
        "" | "w" => "1w",
        "m" => "1m",
        typed => typed,
    })
}
