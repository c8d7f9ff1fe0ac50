# shellcheck shell=bash
# Sourced by test.sh: steps with a heading, a limit and their time, and an end that leaves no process behind.

# Every process of a step inherits this mark, so that what is left at the end is found without guessing by name.
export KUMI_TEST_RUN="$$-$RANDOM$RANDOM"
started=$SECONDS
steps_and_times=()

# How long any one step may take before it counts as hung.
: "${STEP_LIMIT:=40m}"

# Only builtins here: a helper program would carry the mark too.
marked_processes() {
    local environ pid variable variables
    for environ in /proc/[0-9]*/environ; do
        pid=${environ#/proc/}
        pid=${pid%/environ}
        [[ $pid != "$$" && $pid != "$BASHPID" ]] || continue
        { mapfile -d '' -t variables <"$environ"; } 2>/dev/null || continue
        for variable in "${variables[@]}"; do
            [[ $variable != "KUMI_TEST_RUN=$KUMI_TEST_RUN" ]] || echo "$pid"
        done
    done
}

# Ends what an interrupted or hung step left, and names it: a test that leaks a server is a bug.
finish() {
    local status=$? left
    trap - EXIT
    mapfile -t left < <(marked_processes)
    if [[ ${#left[@]} -gt 0 ]]; then
        echo "test.sh: still running, ended now:" >&2
        ps -o pid=,args= -p "${left[*]}" >&2 || true
        kill "${left[@]}" 2>/dev/null || true
        sleep 1
        kill -KILL "${left[@]}" 2>/dev/null || true
        [[ $status -ne 0 ]] || status=1
    fi
    printf '\n== Times\n'
    printf '%s\n' "${steps_and_times[@]}"
    if [[ $status -eq 0 ]]; then
        printf '\nAll steps passed in %d s.\n' $((SECONDS - started))
    else
        printf '\ntest.sh: FAILED (exit %d) after %d s.\n' "$status" $((SECONDS - started)) >&2
    fi
    exit "$status"
}
trap finish EXIT
trap 'exit 130' INT TERM

# step HEADING COMMAND...: in the background and waited for, because bash runs no trap while a command is in front.
step() {
    local heading=$1 began=$SECONDS
    shift
    printf '\n== %s\n' "$heading"
    timeout --kill-after=20s "$STEP_LIMIT" "$@" </dev/null &
    wait $!
    printf -- '-- %s: %d s\n' "$heading" $((SECONDS - began))
    steps_and_times+=("$(printf '%6d s  %s' $((SECONDS - began)) "$heading")")
}
