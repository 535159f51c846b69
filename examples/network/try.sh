#!/bin/sh
# Tries the whole thing on one Linux machine, as root: four members on machines of their own, which are network namespaces joined
# by a bridge. Three learn; one leaves; another comes. Everything is taken down at the end.
#
#   examples/network/try.sh [path of the program]

set -eu
program=$(command -v "${1:-sottovoce}")
folder=$(mktemp -d)
tag=sv$$
members="ann bob cid dan"
running=""

clean_up() {
    for process in $running; do
        kill "$process" 2>/dev/null || true
    done
    for process in $running; do
        wait "$process" 2>/dev/null || true
    done
    for name in hub $members; do
        ip netns delete "$tag-$name" 2>/dev/null || true
    done
    rm -rf "$folder"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

# A machine for each member, and a cable to each.
ip netns add "$tag-hub"
ip -n "$tag-hub" link add bridge type bridge
ip -n "$tag-hub" link set bridge up
number=1
for name in $members; do
    ip netns add "$tag-$name"
    ip -n "$tag-$name" link set lo up
    ip -n "$tag-$name" link add eth0 type veth peer name "port-$name" netns "$tag-hub"
    ip -n "$tag-hub" link set "port-$name" master bridge up
    ip -n "$tag-$name" address add "10.77.0.$number/24" dev eth0
    ip -n "$tag-$name" link set eth0 up
    number=$((number + 1))
done

cd "$folder"
at() {
    where=$1
    shift
    ip netns exec "$tag-$where" "$program" "$@"
}

# The task that all have, and each member's own rows.
cat > task.toml <<'TASK'
name = "try"
algorithm = "coordinate-descent"
[data]
train = "everyone.csv"
[graph]
kind = "complete"
[model]
points-max = 10
regularization = 0.1
[run]
tolerance = 1e-6
TASK
number=1
for name in $members; do
    awk -v name="$name" -v seed="$number" 'BEGIN {
        srand(seed); print "agent,label,x,y";
        for (k = 0; k < 8; k++) { x = 2 * rand() - 1; y = 2 * rand() - 1; print name "," (x + y / 3 > 0 ? 1 : -1) "," x "," y }
    }' > "$name.csv"
    at "$name" peer init "$name" --task task.toml --agent "$name" --data "$name.csv" \
        --listen "/ip4/10.77.0.$number/tcp/4001" --interval 0.1 --quiet
    number=$((number + 1))
done

meet() {
    at "$1" peer add "$1" "$2/card.toml" --quiet
    at "$2" peer add "$2" "$1/card.toml" --quiet
}
start() {
    for name in "$@"; do
        ip netns exec "$tag-$name" "$program" peer start "$name" 2>>"$name/log.txt" &
        running="$running $!"
    done
}
until_quiet() {
    for name in "$@"; do
        tries=0
        until at "$name" peer status "$name" --json | grep -q '"phase":"quiet"'; do
            tries=$((tries + 1))
            if [ "$tries" -gt 300 ]; then
                echo "$name is not quiet after a minute:" >&2
                tail -n 5 "$name/log.txt" >&2
                exit 1
            fi
            sleep 0.2
        done
    done
}
stop() {
    for name in "$@"; do
        at "$name" peer stop "$name" --quiet
    done
}

echo "Three members learn."
meet ann bob
meet ann cid
meet bob cid
start ann bob cid
until_quiet ann bob cid
at ann peer status ann
at ann peer predict ann bob.csv | head -n 3

echo "cid leaves; dan comes."
stop cid ann bob
for name in ann bob; do
    at "$name" peer remove "$name" cid --quiet
    meet "$name" dan
done
start ann bob dan
until_quiet ann bob dan
at dan peer status dan
stop ann bob dan
echo "Done."
