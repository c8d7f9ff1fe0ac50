//! From source text to prototypes: lexer, parser and code generator in one pass, as Lua 5.1 does it.

mod code;
mod expr;
mod func;
mod lex;
mod parser;
mod stat;

use crate::base::value::{FuncId, Str};
use crate::vm::heap::{Closure, LuaClosure};
use crate::vm::host::Host;
use crate::vm::meter::{Budget, Meter};
use crate::vm::{Error, Vm};

/// Why a chunk was not compiled.
#[derive(Debug)]
pub(crate) enum CompileError {
    /// A message with chunk name and line.
    Syntax(Vec<u8>),
    /// The parser would need more of the thread's stack than the limits allow.
    StackExhausted,
    /// The memory limit.
    Memory,
    /// The host ended the script.
    Stopped(Error),
}

impl CompileError {
    /// The text that `loadstring` returns; the error itself if nothing may catch it.
    pub(crate) fn text(self) -> Result<Vec<u8>, Error> {
        Ok(match self {
            CompileError::Syntax(text) => text,
            CompileError::StackExhausted => b"chunk has too many syntax levels".to_vec(),
            CompileError::Memory => b"not enough memory".to_vec(),
            CompileError::Stopped(error) => return Err(error),
        })
    }
}

impl Vm {
    /// Compiles a chunk that lies outside of the heap. Nothing is collected meanwhile.
    pub(crate) fn compile(
        &mut self,
        host: &mut dyn Host,
        source: &[u8],
        name: Str,
    ) -> Result<FuncId, CompileError> {
        let budget = Budget {
            memory_bytes: self.memory_limit().saturating_sub(source.len()),
            meter: Meter {
                fuel: &mut self.fuel,
                interval: self.limits.hook_interval,
                host,
            },
        };
        let (depth, floor) = (self.depth, self.stack_floor);
        let proto = parser::compile(&mut self.heap, source, name, depth, floor, budget)?;
        let closure = Closure::Lua(LuaClosure {
            proto,
            upvals: Box::default(),
        });
        Ok(self.heap.function(closure, self.globals))
    }
}
