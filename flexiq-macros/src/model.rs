//! What a task is: its settings, its parameters by role, its function. The model answers questions; it emits nothing.

use proc_macro2::{TokenStream, TokenTree};
use quote::{ToTokens, format_ident};
use syn::ext::IdentExt;
use syn::{Attribute, Expr, FnArg, Ident, Meta, Pat, Type};

use crate::parse::{Argument, Function};
use crate::problems::Problems;
use crate::settings::Settings;

/// One annotated function.
pub(crate) struct Task {
    pub(crate) settings: Settings,
    pub(crate) parameters: Vec<Parameter>,
    /// Without the marks on its parameters.
    pub(crate) function: Function,
}

/// One parameter of the function.
pub(crate) struct Parameter {
    /// Its name as written, or one made up for a pattern.
    pub(crate) name: Ident,
    /// Its key in the payload: the name without `r#` and leading `_`.
    pub(crate) key: String,
    pub(crate) of_type: Type,
    pub(crate) role: Role,
}

/// Where a parameter's value comes from.
pub(crate) enum Role {
    Payload { default: Option<DefaultValue>, secret: bool },
    State,
    Context,
}

/// What stands for a parameter that a payload does not name.
pub(crate) enum DefaultValue {
    /// `#[default]`.
    OfType,
    /// `#[default = EXPR]`.
    Expr(Expr),
}

impl Task {
    /// Makes the model of what was parsed, taking our marks off the parameters.
    pub(crate) fn read(arguments: Vec<Argument>, mut function: Function, problems: &mut Problems) -> Self {
        let settings = Settings::read(arguments, problems);
        let mut parameters = Vec::new();
        for input in &mut function.signature.inputs {
            if let FnArg::Typed(typed) = input {
                let name = binding(&typed.pat, parameters.len(), problems);
                let role = Role::read(&mut typed.attrs, problems);
                let key = name.unraw().to_string().trim_start_matches('_').to_owned();
                parameters.push(Parameter { name, key, of_type: (*typed.ty).clone(), role });
            }
        }
        Self { settings, parameters, function }
    }

    /// The function's name without `r#`.
    pub(crate) fn base(&self) -> Ident {
        self.function.signature.ident.unraw()
    }

    /// The stored name.
    pub(crate) fn name(&self) -> String {
        self.settings.name.clone().unwrap_or_else(|| self.base().to_string())
    }

    /// The parameters that are stored.
    pub(crate) fn payload(&self) -> impl Iterator<Item = &Parameter> {
        self.parameters.iter().filter(|parameter| parameter.is_payload())
    }
}

impl Parameter {
    pub(crate) fn is_payload(&self) -> bool {
        matches!(self.role, Role::Payload { .. })
    }

    pub(crate) fn default(&self) -> Option<&DefaultValue> {
        match &self.role {
            Role::Payload { default, .. } => default.as_ref(),
            _ => None,
        }
    }

    pub(crate) fn is_secret(&self) -> bool {
        matches!(self.role, Role::Payload { secret: true, .. })
    }

    /// Whether an expression may name it: over-cautious, since a format string may hold a name too.
    pub(crate) fn is_named_in(&self, tokens: TokenStream) -> bool {
        let name = self.name.unraw().to_string();
        tokens.into_iter().any(|token| match token {
            TokenTree::Group(group) => self.is_named_in(group.stream()),
            TokenTree::Ident(ident) => ident.unraw() == name,
            TokenTree::Literal(literal) => literal.to_string().contains(&name),
            TokenTree::Punct(_) => false,
        })
    }
}

/// The name that a parameter's pattern binds.
fn binding(pattern: &Pat, index: usize, problems: &mut Problems) -> Ident {
    match pattern {
        Pat::Ident(pat) if pat.by_ref.is_none() && pat.subpat.is_none() => return pat.ident.clone(),
        Pat::Wild(_) => {
            problems.at(pattern, "the payload needs a name for this: write one, such as `_unused`");
        }
        _ => problems
            .at(pattern, "a task's parameter is one name: write `name: Type`, and take it apart in the body"),
    }
    format_ident!("__flexiq_{index}")
}

impl Role {
    /// Takes our marks off a parameter's attributes.
    fn read(attributes: &mut Vec<Attribute>, problems: &mut Problems) -> Self {
        let (marks, others): (Vec<Attribute>, _) = std::mem::take(attributes).into_iter().partition(is_mark);
        *attributes = others;
        for other in attributes.iter() {
            if other.path().is_ident("cfg") || other.path().is_ident("cfg_attr") {
                problems.at(
                    other,
                    "a payload has the same parameters in every build: put the `#[cfg]` on the whole function",
                );
            }
        }
        // It may hold a mark, which nobody else knows.
        attributes.retain(|other| !other.path().is_ident("cfg_attr"));
        let find = |name: &str| marks.iter().find(|mark| mark.path().is_ident(name));
        let mut refuse = |mark: Option<&Attribute>, message: &str| {
            if let Some(mark) = mark {
                problems.at(mark, message);
            }
        };
        for (index, mark) in marks.iter().enumerate() {
            if marks[..index].iter().any(|earlier| earlier.path().get_ident() == mark.path().get_ident()) {
                refuse(Some(mark), "this mark is there already: remove one");
            }
            match (&mark.meta, mark.path().is_ident("default")) {
                (Meta::Path(_), _) | (Meta::NameValue(_), true) => {}
                (_, true) => refuse(Some(mark), "write `#[default]` or `#[default = EXPR]`"),
                (_, false) => {
                    let name = mark.path().to_token_stream();
                    refuse(Some(mark), &format!("write `#[{name}]` alone"));
                }
            }
        }
        let (state, context) = (find("state"), find("context"));
        if state.is_some() || context.is_some() {
            if state.is_some() {
                refuse(context, "a parameter is `#[state]` or `#[context]`: remove one");
            }
            let stored = "this parameter comes from the worker and is not stored: remove this mark";
            refuse(find("default"), stored);
            refuse(find("secret"), stored);
            return if state.is_some() { Self::State } else { Self::Context };
        }
        let default = find("default").map(|mark| match &mark.meta {
            Meta::NameValue(pair) => DefaultValue::Expr(pair.value.clone()),
            _ => DefaultValue::OfType,
        });
        Self::Payload { default, secret: find("secret").is_some() }
    }
}

fn is_mark(attribute: &Attribute) -> bool {
    ["state", "context", "default", "secret"].iter().any(|mark| attribute.path().is_ident(mark))
}
