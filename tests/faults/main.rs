//! Real processes and real signals on one real file. Time is real here too, because the processes have their own.

mod process;
mod signals;
