//! Real processes and real signals on one real file. Time is real here too, because the processes have their own.

mod dose;
mod full_queue;
mod kill_loop;
mod place;
mod process;
mod producers;
mod signals;
mod store_log;
