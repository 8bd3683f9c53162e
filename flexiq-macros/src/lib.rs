//! The `#[task]` attribute of flexiq. Users reach it as `flexiq::task`.
