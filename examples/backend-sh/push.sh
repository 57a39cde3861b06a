#!/bin/sh
# A backend in curl and sh: authenticates, pushes one message to one device, prints the gateway's answer.
# Exits 0 only when the gateway accepted the message.
set -eu

usage() {
    cat >&2 <<'TEXT'
usage: push.sh CID PAYLOAD [REQUEST_ID]

From the environment:
  FERRY_HTTP           the gateway, such as http://127.0.0.1:7800
  FERRY_APP            the app's id
  FERRY_APP_KEY        the app's key
  FERRY_MASTER_SECRET  the app's secret for backends
TEXT
    exit 2
}

fail() {
    printf 'push.sh: %s\n' "$1" >&2
    exit 1
}

# The text between the quotes of a JSON string. Control characters other than these are refused by the gateway.
json() {
    printf '%s' "$1" \
        | sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e "s/$(printf '\t')/\\\\t/g" -e "s/$(printf '\r')/\\\\r/g" \
        | awk 'NR > 1 { printf "\\n" } { printf "%s", $0 }'
}

# The value of a member whose value is a plain string or number.
member() {
    printf '%s' "$2" | sed -n 's/.*"'"$1"'":"\{0,1\}\([^",}]*\).*/\1/p'
}

# POST of a body that comes from stdin, so that nothing secret stands in the list of processes.
post() {
    curl --silent --show-error --max-time 30 --header 'Content-Type: application/json' --data-binary @- "$@" \
        || fail "there is no answer from $FERRY_HTTP"
}

[ $# -ge 2 ] && [ $# -le 3 ] || usage
for name in FERRY_HTTP FERRY_APP FERRY_APP_KEY FERRY_MASTER_SECRET; do
    eval "[ -n \"\${$name:-}\" ]" || fail "$name is not set"
done

cid=$1
payload=$(json "$2")
# The same id for the same call makes a repeat safe; a new call has a new one.
request_id=${3:-$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')}
base=$FERRY_HTTP/v2/$FERRY_APP

timestamp=$(date +%s)000
sign=$(printf '%s%s%s' "$FERRY_APP_KEY" "$timestamp" "$FERRY_MASTER_SECRET" | sha256sum | cut -c1-64)
answer=$(printf '{"sign":"%s","timestamp":"%s","appkey":"%s"}' "$sign" "$timestamp" "$FERRY_APP_KEY" \
    | post "$base/auth")
[ "$(member code "$answer")" = 0 ] || fail "the gateway did not take the key and the master secret: $answer"
token=$(member token "$answer")

# The token travels in a header; curl reads it from a file, here the third descriptor.
answer=$(printf '{"request_id":"%s","audience":{"cid":["%s"]},"push_message":{"transmission":"%s"}}' \
    "$(json "$request_id")" "$(json "$cid")" "$payload" \
    | post --header @/dev/fd/3 "$base/push/single/cid" 3<<TEXT
token: $token
TEXT
)
printf '%s\n' "$answer"
[ "$(member code "$answer")" = 0 ]
