//! JSON with comments, as people write their settings: read with the place of each part in the text.
//!
//! `jsonc-parser` reads it. Before that, one pass over the tokens refuses forms that JSON does not have and
//! that the parser would accept, and bounds the nesting, since the parser takes stack for each level.

use jsonc_parser::ast::Value;
use jsonc_parser::tokens::Token;
use jsonc_parser::{CollectOptions, ParseOptions, Scanner, ScannerOptions, parse_to_ast};

use super::limits::JSONC_DEPTH_MAX;

/// The value of a text, with the places of its parts.
#[derive(Debug)]
pub struct Tree<'a> {
    /// The value of the whole text; each part knows its place.
    pub value: Value<'a>,
    /// The positions of the commas between its parts, in order.
    pub commas: Vec<usize>,
}

/// Reads a text in which no comma may precede a closing bracket.
///
/// # Errors
/// The mistake, and its line.
pub fn parse(text: &str) -> Result<Tree<'_>, String> {
    read(text, false)
}

/// Reads a text in which a comma may precede a closing bracket.
///
/// # Errors
/// The mistake, and its line.
pub fn parse_with_trailing_commas(text: &str) -> Result<Tree<'_>, String> {
    read(text, true)
}

fn read(text: &str, trailing_commas: bool) -> Result<Tree<'_>, String> {
    let commas = commas_in(text)?;
    let options = ParseOptions {
        allow_comments: true,
        allow_trailing_commas: trailing_commas,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    let parsed = parse_to_ast(text, &CollectOptions::default(), &options);
    let parsed = parsed.map_err(|err| in_line(err.line_display(), err.kind()))?;
    let value = parsed.value.ok_or_else(|| wrong(text, text.len(), "it ends too early"))?;
    Ok(Tree { value, commas })
}

/// Returns the commas of a text whose tokens are those of JSON, nested no deeper than the bound.
fn commas_in(text: &str) -> Result<Vec<usize>, String> {
    let options = ScannerOptions {
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    let mut scanner = Scanner::new(text, &options);
    let (mut commas, mut depth, mut end) = (Vec::new(), 0_usize, 0);
    loop {
        let token = scanner.scan().map_err(|err| in_line(err.line_display(), err.kind()))?;
        let start = scanner.token_start();
        // The parser skips every blank of Unicode; JSON does not.
        if text[end..start].contains(|c| !matches!(c, ' ' | '\t' | '\r' | '\n')) {
            return Err(wrong(text, start, "a blank is none of JSON's"));
        }
        let Some(token) = token else { return Ok(commas) };
        end = scanner.token_end();
        match token {
            Token::OpenBrace | Token::OpenBracket if depth == JSONC_DEPTH_MAX => {
                return Err(wrong(text, start, "it is nested too deeply"));
            }
            Token::OpenBrace | Token::OpenBracket => depth += 1,
            Token::CloseBrace | Token::CloseBracket => depth = depth.saturating_sub(1),
            Token::Comma => commas.push(start),
            Token::String(_) if text[start..end].contains(|c| c < ' ') => {
                return Err(wrong(text, start, "a text has a control character in it"));
            }
            _ => {}
        }
    }
}

fn wrong(text: &str, at: usize, why: &str) -> String {
    in_line(text[..at].matches('\n').count() + 1, why)
}

fn in_line(line: usize, why: impl std::fmt::Display) -> String {
    format!("line {line}: {why}")
}
