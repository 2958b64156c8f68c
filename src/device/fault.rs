//! How errors of wgpu become error values: scopes, errors outside any scope, the lost device.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use futures::FutureExt;

use crate::error::{Error, ErrorKind, Result};

/// What is known of a device's faults; the callbacks of wgpu write it.
#[derive(Debug, Default)]
pub(super) struct Faults {
    lost: OnceLock<String>,
    uncaptured: Mutex<Option<String>>,
}

impl Faults {
    /// Installs the callbacks, so that no error of `device` ends the process.
    pub(super) fn watch(device: &wgpu::Device) -> Arc<Self> {
        let faults = Arc::new(Faults::default());
        let seen = faults.clone();
        device.set_device_lost_callback(move |reason, message| {
            let reason = match reason {
                wgpu::DeviceLostReason::Destroyed => "it was destroyed",
                wgpu::DeviceLostReason::Unknown if message.is_empty() => "the driver gave no reason",
                wgpu::DeviceLostReason::Unknown => message.as_str(),
            };
            seen.set_lost(reason);
        });
        let seen = faults.clone();
        device.on_uncaptured_error(Arc::new(move |error: wgpu::Error| {
            log::error!("outside of an error scope: {error}");
            seen.uncaptured.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error.to_string());
        }));
        faults
    }

    /// For a device whose callbacks are its owner's: error scopes catch what we cause, the owner says when it is lost.
    pub(super) fn of_caller() -> Arc<Self> {
        Arc::default()
    }

    /// Marks the device as lost; the first reason stays.
    pub(super) fn set_lost(&self, reason: &str) {
        let _ = self.lost.set(reason.to_string());
    }

    /// [`ErrorKind::DeviceLost`] with the reason, if the device is lost.
    pub(super) fn check(&self) -> Result<()> {
        match self.lost.get() {
            None => Ok(()),
            Some(reason) => {
                Err(Error::new(ErrorKind::DeviceLost, format!("the device is lost: {reason}; open a new one and load the work again")))
            }
        }
    }

    /// The first error that no scope caught since the last call.
    fn take_uncaptured(&self) -> Option<String> {
        self.uncaptured.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Does `f` under error scopes. A fault is an error of its own kind (out of memory, device lost) or else of `kind`; `what` says
    /// what was being done. A fault of someone else's, which no scope caught, is told once and before `f`, which then is not done.
    pub(super) fn scoped<T>(&self, device: &wgpu::Device, kind: ErrorKind, what: &str, f: impl FnOnce() -> T) -> Result<T> {
        self.check()?;
        if let Some(message) = self.take_uncaptured() {
            return Err(Error::internal(format!(
                "before {what}, something else than Sublane used the device wrongly, an encoder or buffer of the program's own perhaps: \
                 {message}"
            )));
        }
        let memory = device.push_error_scope(wgpu::ErrorFilter::OutOfMemory);
        let internal = device.push_error_scope(wgpu::ErrorFilter::Internal);
        let validation = device.push_error_scope(wgpu::ErrorFilter::Validation);
        let value = f();
        // Native backends answer at once, so that no scope is held over an await, where the work could change its thread.
        let caught = [validation.pop().now_or_never(), internal.pop().now_or_never(), memory.pop().now_or_never()];
        self.check()?;
        if let Some(error) = caught.into_iter().flatten().flatten().next() {
            let kind = if matches!(error, wgpu::Error::OutOfMemory { .. }) { ErrorKind::OutOfMemory } else { kind };
            return Err(Error::new(kind, format!("{what}: {error}")).with_source(error));
        }
        Ok(value)
    }

    /// Polls `device`. wgpu panics where the driver reports a lost device here; that becomes an error value too.
    pub(super) fn poll(&self, device: &wgpu::Device, poll: wgpu::PollType) -> Result<()> {
        let polled = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| device.poll(poll)));
        if polled.is_err() {
            self.set_lost("the driver reported a failure while work was waited for");
        }
        self.check()?;
        match polled {
            Ok(Err(error)) => Err(Error::internal(format!("waiting for the device failed: {error}")).with_source(error)),
            _ => Ok(()),
        }
    }
}
