//! The probes run on the adapter of the machine and give numbers that can be. How large they are decides nothing here.

mod device_common;

use device_common::open;
use sublane::device::Probes;
use sublane::progress::Work;

#[test]
fn probes_give_numbers() {
    let device = open();
    let before = device.used_bytes();
    let probes = Probes::run(&device, &Work::quiet()).expect("runs");
    println!("{}", serde_json::to_string_pretty(&probes).expect("serialises"));
    assert_eq!(device.used_bytes(), before);
    assert_eq!(probes.clock, device.info().clock);
    assert_eq!(probes.fma.len(), 16);
    let positive = |x: &f64| x.is_finite() && *x > 0.0;
    assert!(probes.fma.iter().all(|p| positive(&p.gflops) && p.gflops <= probes.fma_gflops));
    assert!(probes.fma.iter().any(|p| p.name == probes.fma_best && p.gflops == probes.fma_gflops));
    assert!(positive(&probes.dot4_gops));
    for rates in [probes.read_gbps, probes.write_gbps, probes.copy_gbps, probes.r2w1_gbps] {
        assert!(rates.iter().all(positive), "{rates:?}");
    }
    assert!(probes.dispatch_us >= 0.0 && probes.submission_us > 0.0);
}
