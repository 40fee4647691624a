//! Which parts of a match the groups of a regular expression have.
//!
//! The library's groups are those of the first way that leads to a match. PostgreSQL's are told from the left: of what
//! stands one behind the other each takes as much as leaves the rest its match, of alternatives the first counts that
//! fits, and of what is repeated the last time. So a pattern is taken apart as it was written, with an automaton for
//! each of its parts.

use std::cell::RefCell;

use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::{Anchored, Input, MatchKind};
use regex_syntax::ast::{Ast, GroupKind, RepetitionKind, RepetitionRange, Span, parse::Parser};

use super::found::{Found, unsure};
use super::regular::invalid;
use crate::error::Result;

/// A pattern, or a part of it.
pub(super) struct Part {
    automaton: Automaton,
    node: Node,
}

enum Node {
    /// Without groups.
    Plain,
    Group(usize, Box<Part>),
    Alternatives(Vec<Part>),
    /// Parts one behind the other, each with what stands behind it.
    Sequence(Vec<(Part, Option<Automaton>)>),
    /// Once or not at all.
    Optional(Box<Part>),
    /// Any number of times, and that as a whole.
    Repeated {
        part: Box<Part>,
        others: Box<Automaton>,
    },
    /// A number of times of which it is not told here how they are divided.
    Counted,
}

impl Part {
    /// Takes a pattern apart. `flags` is how long the flags at its beginning are.
    ///
    /// # Errors
    /// What is no pattern.
    pub(super) fn new(pattern: &str, flags: usize) -> Result<Part> {
        let ast = Parser::new().parse(pattern).map_err(invalid)?;
        Builder { pattern, flags }.part(&ast)
    }

    /// Puts down what the groups have of a match that lies in a range.
    ///
    /// # Errors
    /// A text in which it cannot be told.
    pub(super) fn groups(
        &self,
        text: &str,
        start: usize,
        end: usize,
        found: &mut Found,
    ) -> Result<()> {
        match &self.node {
            Node::Plain => Ok(()),
            Node::Group(number, part) => {
                if let Some(group) = found.get_mut(*number) {
                    *group = Some(start..end);
                }
                part.groups(text, start, end, found)
            }
            Node::Alternatives(parts) => {
                for part in parts {
                    if part.automaton.fits(text, start, end)? {
                        return part.groups(text, start, end, found);
                    }
                }
                Err(unsure())
            }
            Node::Sequence(parts) => {
                let mut at = start;
                for (part, rest) in parts {
                    let until = match rest {
                        None => end,
                        Some(rest) => {
                            longest(&part.automaton, rest, text, at, end)?.ok_or_else(unsure)?
                        }
                    };
                    part.groups(text, at, until, found)?;
                    at = until;
                }
                Ok(())
            }
            // Of nothing there is one time of nothing, if there can be.
            Node::Optional(part) | Node::Repeated { part, .. } if start == end => {
                match part.automaton.fits(text, start, end)? {
                    true => part.groups(text, start, end, found),
                    false => Ok(()),
                }
            }
            Node::Optional(part) => part.groups(text, start, end, found),
            Node::Repeated { part, others } => {
                let mut at = start;
                loop {
                    let until =
                        longest(&part.automaton, others, text, at, end)?.ok_or_else(unsure)?;
                    if until == end {
                        return part.groups(text, at, until, found);
                    }
                    if until == at {
                        return Err(unsure());
                    }
                    at = until;
                }
            }
            Node::Counted => Err(unsure()),
        }
    }
}

/// The end of the longest match of a part that leaves the rest one.
fn longest(
    part: &Automaton,
    rest: &Automaton,
    text: &str,
    start: usize,
    end: usize,
) -> Result<Option<usize>> {
    let mut limit = end;
    while let Some(until) = part.longest(text, start, limit)? {
        if rest.fits(text, until, end)? {
            return Ok(Some(until));
        }
        match text[start..until].char_indices().next_back() {
            Some((before, _)) => limit = start + before,
            None => break,
        }
    }
    Ok(None)
}

struct Automaton {
    automaton: DFA,
    cache: RefCell<Cache>,
}

impl Automaton {
    fn new(pattern: &str) -> Result<Automaton> {
        let automaton = DFA::builder()
            .configure(DFA::config().match_kind(MatchKind::All).unicode_word_boundary(true))
            .build(pattern)
            .map_err(invalid)?;
        let cache = RefCell::new(automaton.create_cache());
        Ok(Automaton { automaton, cache })
    }

    /// Where the longest match ends that begins at a byte and does not go beyond another.
    fn longest(&self, text: &str, start: usize, end: usize) -> Result<Option<usize>> {
        let input = Input::new(text).range(start..end).anchored(Anchored::Yes);
        let found = self.automaton.try_search_fwd(&mut self.cache.borrow_mut(), &input);
        found.map(|end| end.map(|end| end.offset())).map_err(|_| unsure())
    }

    fn fits(&self, text: &str, start: usize, end: usize) -> Result<bool> {
        Ok(self.longest(text, start, end)? == Some(end))
    }
}

struct Builder<'p> {
    pattern: &'p str,
    flags: usize,
}

impl Builder<'_> {
    /// The automaton of what is written between two places.
    fn automaton(&self, start: usize, end: usize, behind: &str) -> Result<Automaton> {
        let (flags, start) = (&self.pattern[..self.flags], start.max(self.flags));
        let written = self.pattern.get(start..end).unwrap_or_default();
        // A comment at its end ends with its line.
        let line = if flags.contains('x') { "\n" } else { "" };
        Automaton::new(&format!("{flags}(?:{written}{line}){behind}"))
    }

    fn of(&self, span: &Span, behind: &str) -> Result<Automaton> {
        self.automaton(span.start.offset, span.end.offset, behind)
    }

    fn part(&self, ast: &Ast) -> Result<Part> {
        let node = match ast {
            ast if !has_groups(ast) => Node::Plain,
            Ast::Group(group) => {
                let inner = self.part(&group.ast)?;
                match &group.kind {
                    GroupKind::CaptureIndex(number) => {
                        Node::Group(usize::try_from(*number).unwrap_or(0), Box::new(inner))
                    }
                    _ => inner.node,
                }
            }
            Ast::Alternation(alternation) => Node::Alternatives(
                alternation.asts.iter().map(|ast| self.part(ast)).collect::<Result<_>>()?,
            ),
            Ast::Concat(concat) => self.sequence(&concat.asts)?,
            Ast::Repetition(repetition) => {
                let inner = self.part(&repetition.ast)?;
                // Of several times the last is kept, and those before it take what they can.
                let times = match &repetition.op.kind {
                    RepetitionKind::ZeroOrOne => None,
                    RepetitionKind::ZeroOrMore => Some(None),
                    RepetitionKind::OneOrMore => Some(Some("*".to_owned())),
                    RepetitionKind::Range(range) => match range {
                        RepetitionRange::Exactly(1) => return Ok(inner),
                        RepetitionRange::Exactly(count @ 2..) => {
                            Some(Some(format!("{{{}}}", count - 1)))
                        }
                        RepetitionRange::AtLeast(least @ 1..) => {
                            Some(Some(format!("{{{},}}", least - 1)))
                        }
                        RepetitionRange::Bounded(least @ 1.., most) => {
                            Some(Some(format!("{{{},{}}}", least - 1, most - 1)))
                        }
                        _ => {
                            let automaton = self.of(ast.span(), "")?;
                            return Ok(Part { automaton, node: Node::Counted });
                        }
                    },
                };
                let of = repetition.ast.span();
                match times {
                    None => Node::Optional(Box::new(inner)),
                    Some(None) => {
                        let others = Box::new(self.of(of, "*")?);
                        Node::Repeated { part: Box::new(inner), others }
                    }
                    Some(Some(times)) => {
                        let before = Part { automaton: self.of(of, &times)?, node: Node::Plain };
                        Node::Sequence(vec![(before, Some(self.of(of, "")?)), (inner, None)])
                    }
                }
            }
            _ => Node::Plain,
        };
        Ok(Part { automaton: self.of(ast.span(), "")?, node })
    }

    /// What has no groups and stands together is one part.
    fn sequence(&self, asts: &[Ast]) -> Result<Node> {
        let mut parts = Vec::new();
        let (last, mut at) = (asts.last().map_or(0, |last| last.span().end.offset), 0);
        while at < asts.len() {
            let count = asts[at..].iter().take_while(|ast| !has_groups(ast)).count();
            let start = asts[at].span().start.offset;
            let part = match count {
                0 => self.part(&asts[at])?,
                _ => {
                    let end = asts[at + count - 1].span().end.offset;
                    Part { automaton: self.automaton(start, end, "")?, node: Node::Plain }
                }
            };
            at += count.max(1);
            let rest = match asts.get(at) {
                Some(next) => Some(self.automaton(next.span().start.offset, last, "")?),
                None => None,
            };
            parts.push((part, rest));
        }
        Ok(Node::Sequence(parts))
    }
}

fn has_groups(ast: &Ast) -> bool {
    match ast {
        Ast::Group(group) => {
            matches!(group.kind, GroupKind::CaptureIndex(_)) || has_groups(&group.ast)
        }
        Ast::Repetition(repetition) => has_groups(&repetition.ast),
        Ast::Alternation(alternation) => alternation.asts.iter().any(has_groups),
        Ast::Concat(concat) => concat.asts.iter().any(has_groups),
        _ => false,
    }
}
