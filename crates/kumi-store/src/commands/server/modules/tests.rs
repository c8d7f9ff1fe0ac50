use crate::testing::Lab;

#[test]
fn there_are_no_modules() {
    let refused = "-ERR Modules are not supported.\r\n";
    let mut lab = Lab::new();
    lab.check(&[
        ("MODULE LIST", "*0\r\n"),
        ("MODULE LOAD /lib/a.so", refused),
        ("MODULE LOADEX /lib/a.so CONFIG a b ARGS c", refused),
        ("MODULE UNLOAD a", refused),
        (
            "MODULE LIST a",
            "-ERR wrong number of arguments for 'module|list' command\r\n",
        ),
        (
            "MODULE NONE",
            "-ERR unknown subcommand 'NONE'. Try MODULE HELP.\r\n",
        ),
    ]);
    let help = lab.run("MODULE HELP");
    assert!(help.starts_with("*11\r\n+MODULE <subcommand>"), "{help}");
}
