#!/bin/sh
# Keeps a value in the store that says which node it runs on. KUMI_NODE and KUMI_URL are from the node.
echo "beating on $KUMI_NODE"
while kumi muf keep heart beat "${KUMI_NODE%~*}" --ttl 10s; do
    sleep 2
done
