//! A few seconds of damaged input; the program takes as much as it is given.

#[test]
fn no_damaged_input_panics_or_takes_much_memory() {
    let (mut inputs, mut believed) = (0, 0);
    sottovoce_fuzz::fuzz_all(200_000, 7, |report| {
        assert!(report.failures.is_empty(), "{}: {:#?}", report.name, report.failures);
        assert!(report.believed > 0, "{}: nothing was ever believed, so nothing was tried", report.name);
        inputs += report.inputs;
        believed += report.believed;
    });
    assert!(inputs >= 200_000 && believed < inputs, "{believed} of {inputs}");
}
