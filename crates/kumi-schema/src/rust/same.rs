//! Whether two texts are the same Rust code, however each is laid out.
//!
//! A formatter changes line breaks, commas at the end of lists, comments, and braces around the one expression of a closure
//! or a match arm, and makes one `derive` of several in a row. Both texts are parsed, brought into one form in these respects, and printed by one printer.

use proc_macro2::{Punct, Spacing, TokenStream, TokenTree};
use syn::visit_mut::{self, VisitMut};
use syn::{Attribute, Block, Expr, Meta, Stmt};

/// Whether a file holds the code that a generator wrote: the same items, documentation included. Layout and comments that
/// are no documentation do not count, so a file that `rustfmt` has formatted is still the same. Text that is no Rust is
/// the same as nothing.
///
/// ```
/// let written = "/// Adds.\npub fn add(a: u8, b: u8) -> u8 { a + b }";
/// let formatted = "/// Adds.\npub fn add(\n    a: u8,\n    b: u8,\n) -> u8 {\n    a + b\n}\n";
/// assert!(kumi_schema::is_same_rust(formatted, written));
/// assert!(!kumi_schema::is_same_rust(&formatted.replace("a + b", "a - b"), written));
/// ```
pub fn is_same_rust(one: &str, other: &str) -> bool {
    match (canonical(one), canonical(other)) {
        (Some(one), Some(other)) => one == other,
        _ => false,
    }
}

fn canonical(text: &str) -> Option<String> {
    let mut file = syn::parse_file(text).ok()?;
    Canonical.visit_file_mut(&mut file);
    Some(prettyplease::unparse(&file))
}

struct Canonical;

impl VisitMut for Canonical {
    fn visit_expr_closure_mut(&mut self, closure: &mut syn::ExprClosure) {
        visit_mut::visit_expr_closure_mut(self, closure);
        bare(&mut closure.body);
    }

    fn visit_arm_mut(&mut self, arm: &mut syn::Arm) {
        visit_mut::visit_arm_mut(self, arm);
        bare(&mut arm.body);
        arm.comma = None;
    }

    fn visit_item_struct_mut(&mut self, item: &mut syn::ItemStruct) {
        visit_mut::visit_item_struct_mut(self, item);
        merge_derives(&mut item.attrs);
    }

    fn visit_item_enum_mut(&mut self, item: &mut syn::ItemEnum) {
        visit_mut::visit_item_enum_mut(self, item);
        merge_derives(&mut item.attrs);
    }

    fn visit_attribute_mut(&mut self, attribute: &mut Attribute) {
        if let Meta::List(list) = &mut attribute.meta {
            list.tokens = without_last_commas(list.tokens.clone());
        }
    }

    fn visit_macro_mut(&mut self, invoked: &mut syn::Macro) {
        invoked.tokens = without_last_commas(invoked.tokens.clone());
    }
}

/// Makes one `derive` of those that follow each other.
fn merge_derives(attributes: &mut Vec<Attribute>) {
    let mut merged: Vec<Attribute> = Vec::with_capacity(attributes.len());
    for attribute in attributes.drain(..) {
        if attribute.path().is_ident("derive")
            && let Some(before) = merged.last_mut()
            && before.path().is_ident("derive")
            && let (Meta::List(before), Meta::List(list)) = (&mut before.meta, &attribute.meta)
        {
            before
                .tokens
                .extend([TokenTree::Punct(Punct::new(',', Spacing::Alone))]);
            before.tokens.extend(list.tokens.clone());
        } else {
            merged.push(attribute);
        }
    }
    *attributes = merged;
}

/// Takes the braces off a block that is one expression.
fn bare(body: &mut Expr) {
    let Expr::Block(block) = body else { return };
    if !block.attrs.is_empty() || block.label.is_some() {
        return;
    }
    let Block { stmts, .. } = &mut block.block;
    if let [Stmt::Expr(_, None)] = stmts.as_slice()
        && let Some(Stmt::Expr(expression, _)) = stmts.pop()
    {
        *body = expression;
    }
}

/// Takes the comma before the end of the tokens, and before the end of each group in them.
fn without_last_commas(tokens: TokenStream) -> TokenStream {
    let mut all: Vec<TokenTree> = tokens
        .into_iter()
        .map(|token| match token {
            TokenTree::Group(group) => {
                let inner = without_last_commas(group.stream());
                TokenTree::Group(proc_macro2::Group::new(group.delimiter(), inner))
            }
            other => other,
        })
        .collect();
    if let Some(TokenTree::Punct(last)) = all.last()
        && last.as_char() == ','
    {
        all.pop();
    }
    all.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layout_does_not_count_and_code_does() {
        let written = "fn f(x: Option<u8>) -> u8 { x.map(|y| { y + 1 }).unwrap_or(match 1 { 1 => { 2 } _ => 3 }) }";
        let check =
            |other: &str, same: bool| assert_eq!(is_same_rust(other, written), same, "{other}");
        check(written, true);
        check(
            "// a comment\nfn f(x: Option<u8>) -> u8 {\n    x.map(|y| y + 1).unwrap_or(match 1 {\n        1 => 2,\n        _ => 3,\n    })\n}\n",
            true,
        );
        check(&written.replace("y + 1", "y + 2"), false);
        check(
            &format!("/// A comment that is documentation.\n{written}"),
            false,
        );
        check(&format!("{written} fn g() {{}}"), false);
        check("fn f(", false);
        assert!(!is_same_rust("", "fn f("));
        assert!(is_same_rust(
            "#[derive(\n  Clone,\n  Copy,\n)]\nstruct A;",
            "#[derive(Clone, Copy)] struct A;"
        ));
        assert!(is_same_rust(
            "#[derive(Clone, Copy, Debug)]\nstruct A;",
            "#[derive(Clone, Copy)] #[derive(Debug)] struct A;"
        ));
        assert!(!is_same_rust(
            "#[derive(Clone, Debug)]\nstruct A;",
            "#[derive(Clone)] #[derive(Copy)] struct A;"
        ));
    }
}
