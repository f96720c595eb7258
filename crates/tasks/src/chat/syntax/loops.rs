//! Loops: what they go over must not be None, and a condition is looked at when its turn comes.

use super::expression::{Token, tokens};
use super::tags::{Piece, Tag, keyword};
use crate::chat::filters::ITERATED;

/// Writes the loops for the engine.
pub(super) fn adapt(pieces: &mut Vec<Piece<'_>>) {
    let mut open = Vec::new();
    let mut lazy = Vec::new();
    for (index, piece) in pieces.iter_mut().enumerate() {
        let Piece::Tag(tag) = piece else { continue };
        match keyword(tag) {
            "for" => {
                iterated(tag);
                open.push((index, false));
            }
            // An else of the loop itself, or of a condition inside; both are rare where this matters.
            "else" => open.iter_mut().for_each(|(_, has_else)| *has_else = true),
            "endfor" => {
                if let Some((start, false)) = open.pop() {
                    lazy.push((start, index));
                }
            }
            _ => {}
        }
    }
    // Inner loops come before outer ones in `lazy`; from the end, so that places stay.
    lazy.sort_unstable();
    let mut added: Vec<(usize, Piece<'_>)> = Vec::new();
    for (start, end) in lazy {
        added.extend(condition_inside(pieces, start, end));
    }
    added.sort_by_key(|(at, _)| *at);
    for (at, piece) in added.into_iter().rev() {
        pieces.insert(at, piece);
    }
}

/// The places of a loop's parts: what it goes over, and the condition.
fn parts<'s>(tokens: &[Token<'s>]) -> Option<(usize, usize, Option<usize>)> {
    let mut depth = 0usize;
    let mut over = None;
    for (index, token) in tokens.iter().enumerate() {
        match token.text {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth = depth.checked_sub(1)?,
            "in" if depth == 0 && over.is_none() => over = Some(index + 1),
            "if" if depth == 0 && over.is_some() => return Some((over?, index, Some(index))),
            "recursive" if depth == 0 && over.is_some() => return Some((over?, index, None)),
            _ => {}
        }
    }
    Some((over?, tokens.len(), None))
}

/// What the loop goes over is put through [`ITERATED`].
fn iterated(tag: &mut Tag<'_>) {
    let Some(tokens) = tokens(&tag.body) else { return };
    let Some((first, end, _)) = parts(&tokens) else { return };
    let (Some(first), Some(last)) = (tokens.get(first), tokens.get(end.wrapping_sub(1))) else { return };
    let (start, end) = (first.at, last.end());
    if start < end {
        tag.body = format!("{}({})|{ITERATED}{}", &tag.body[..start], &tag.body[start..end], &tag.body[end..]);
    }
}

/// The engine looks at the condition of a loop for all items first, Jinja2 for each when its turn comes, which differs when
/// the body sets what the condition reads. There it becomes a condition inside the loop. A body that uses `loop` counts
/// its items, so it stays.
fn condition_inside<'s>(pieces: &mut [Piece<'s>], start: usize, end: usize) -> Vec<(usize, Piece<'s>)> {
    let Some(Piece::Tag(head)) = pieces.get(start) else { return Vec::new() };
    let Some(all) = tokens(&head.body) else { return Vec::new() };
    let Some((_, _, Some(condition))) = parts(&all) else { return Vec::new() };
    let condition = all[condition].at;
    let read: Vec<&str> = all.windows(2).filter(|pair| pair[1].text == ".").map(|pair| pair[0].text).collect();
    let mut sets = false;
    for piece in pieces.get(start + 1..end).unwrap_or_default() {
        let Piece::Tag(tag) = piece else { continue };
        let Some(tokens) = tokens(&tag.body) else { return Vec::new() };
        if tokens.iter().any(|token| token.text == "loop") {
            return Vec::new();
        }
        sets |= match tokens.as_slice() {
            [set, name, dot, ..] => set.text == "set" && dot.text == "." && read.contains(&name.text),
            _ => false,
        };
    }
    if !sets || head.body.trim_end().ends_with("recursive") {
        return Vec::new();
    }
    let (over, condition) = head.body.split_at(condition);
    let (over, condition) = (over.to_owned(), format!(" {condition}"));
    let mut added = Vec::new();
    if let Some(Piece::Tag(head)) = pieces.get_mut(start) {
        let close = std::mem::replace(&mut head.close, "%}");
        head.body = over;
        added.push((start + 1, Piece::Tag(Tag { open: "{%", body: condition, close })));
    }
    if let Some(Piece::Tag(tail)) = pieces.get_mut(end) {
        let open = std::mem::replace(&mut tail.open, "{%");
        added.push((end, Piece::Tag(Tag { open, body: " endif ".to_owned(), close: "%}" })));
    }
    added
}
