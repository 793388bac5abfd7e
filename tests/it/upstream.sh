#!/bin/sh
# An MCP server of one page, over standard input and output. Its tools misbehave, each in a way of its own; $1 says whether
# the server itself does, $2 is a folder for the traces it leaves.
mode=$1
traces=$2
echo $$ >> "$traces/starts"

answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$1" "$2"; }
say() { answer "$1" "{\"content\":[{\"type\":\"text\",\"text\":\"$2\"}]}"; }
tool() { printf '{"name":"%s","description":"%s","inputSchema":%s,"annotations":%s}' "$1" "$2" "$3" "$4"; }

case $mode in
mute) sleep 600 ;;
late) sleep 3 ;;
broken) echo "no database at /nowhere" >&2; exit 3 ;;
babbling) while :; do echo "this is no protocol"; done ;;
stubborn) trap '' TERM HUP INT; sleep 600 & echo $! >> "$traces/children" ;;
esac

reads='{"readOnlyHint":true}'
none='{"type":"object","properties":{}}'
some='{"type":"object","properties":{"word":{"type":"string","description":"A word."},"more":{"type":"integer"}},"required":["word"]}'
list="$(tool echo 'Says it\u001b[31m again.' "$some" "$reads"),$(tool hang 'Never answers.' "$none" "$reads")"
list="$list,$(tool die 'Ends.' "$none" "$reads"),$(tool garbage 'Babbles.' "$none" "$reads"),$(tool flood 'Floods.' "$none" "$reads")"
list="$list,$(tool big 'Says much.' "$none" "$reads"),$(tool error 'Refuses.' "$none" "$reads"),$(tool ask 'Asks back.' "$none" "$reads")"
list="$list,$(tool env 'Tells its environment.' "$none" "$reads"),$(tool odd 'Answers oddly.' "$none" "$reads")"
list="$list,$(tool stuck 'Stands still.' "$none" "$reads")"
list="$list,$(tool pester 'Asks without end.' "$none" "$reads"),$(tool interview 'Asks and listens.' "$none" "$reads")"
list="$list,$(tool announce 'Announces without end.' "$none" "$reads"),$(tool drivel 'Answers nothing.' "$none" "$reads")"
list="$list,$(tool writes 'Writes.' "$none" '{"readOnlyHint":false}'),$(tool destroys 'Destroys.' "$none" '{"readOnlyHint":true,"destructiveHint":true}')"
list="$list,$(tool silent 'Says nothing of itself.' "$none" '{}')"
list="$list,$(tool liar 'Lies.' '{"type":"object","properties":{"a":7}}' "$reads"),$(tool shapeless 'Has no shape.' '[]' "$reads")"
list="$list,$(tool union 'Has a union.' '{"type":"object","properties":{"a":{"type":"string"}},"anyOf":[{"required":["a"]}]}' "$reads")"
list="$list,$(tool open 'Takes anything.' '{"type":"object","additionalProperties":true}' "$reads")"

while IFS= read -r line; do
    id=$(printf '%s' "$line" | sed -n 's/^[^,]*,"id":\([0-9]*\),.*/\1/p')
    case $line in
    *'"method":"initialize"'*)
        if [ "$mode" = modern ]; then
            printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}\n' "$id"
            # Over this connection there is nothing more to say.
            continue
        fi
        answer "$id" '{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"page","version":"1"}}'
        ;;
    *'"method":"server/discover"'*)
        answer "$id" '{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"page","version":"1"}}}'
        ;;
    *'"method":"notifications/cancelled"'*) echo "$line" >> "$traces/cancelled" ;;
    *'"method":"tools/list"'*)
        if [ -e "$traces/more" ]; then
            answer "$id" "{\"tools\":[$list,$(tool later 'Came later.' "$none" "$reads")]}"
        else
            answer "$id" "{\"tools\":[$list]}"
        fi
        ;;
    *'"method":"tools/call"'*)
        case $line in
        *'"name":"echo"'*)
            echo "$line" >> "$traces/calls"
            answer "$id" '{"content":[{"type":"text","text":"again","annotations":{"priority":1.0}},{"type":"resource_link","uri":"page://one","name":"one"}],"structuredContent":{"said":"again","kept":[1,2.5,null]},"isError":false,"own":"lost","_meta":{"theirs":1}}'
            ;;
        *'"name":"hang"'*) ;;
        *'"name":"stuck"'*) trap '' TERM; sleep 600 ;;
        *'"name":"die"'*) echo "giving up" >&2; exit 7 ;;
        *'"name":"garbage"'*)
            echo 'warning: this is no message'
            echo '{"jsonrpc":"2.0"}'
            echo '{"jsonrpc":"2.0","id":999,"result":{}}'
            echo '[1,2'
            say "$id" 'after garbage'
            ;;
        *'"name":"flood"'*) yes 'this is no message and there is no end to it' | head -c 30000000; say "$id" 'after the flood' ;;
        *'"name":"big"'*)
            printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"' "$id"
            head -c 50000000 /dev/zero | tr '\0' 'x'
            printf '"}]}}\n'
            ;;
        *'"name":"error"'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32050,"message":"not today","data":{"until":"tomorrow"}}}\n' "$id" ;;
        *'"name":"ask"'*)
            echo '{"jsonrpc":"2.0","id":500,"method":"sampling/createMessage","params":{"messages":[],"maxTokens":5}}'
            IFS= read -r reply
            case $reply in
            *'"error"'*) say "$id" 'refused' ;;
            *) say "$id" 'granted' ;;
            esac
            ;;
        *'"name":"pester"'* | *'"name":"interview"'*)
            case $line in *interview*) exec 3<&0; cat <&3 >/dev/null & echo $! >> "$traces/children" ;; esac
            seq 1 100000 | sed 's|.*|{"jsonrpc":"2.0","id":&,"method":"sampling/createMessage","params":{"messages":[],"maxTokens":5}}|'
            say "$id" 'after all these questions'
            ;;
        *'"name":"announce"'*)
            yes '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}' | head -n 100000
            say "$id" 'after all this news'
            ;;
        *'"name":"drivel"'*)
            yes '{"jsonrpc":"2.0","id":987654,"result":{"content":[]}}' | head -c 20000000
            say "$id" 'after the drivel'
            ;;
        *'"name":"env"'*) say "$id" "$(env | cut -d= -f1 | sort | tr '\n' ' ') in $(pwd): $GIVEN" ;;
        *'"name":"odd"'*) answer "$id" '"just a text"' ;;
        *'"name":"later"'*) say "$id" 'later' ;;
        *'"name":"union"'* | *'"name":"open"'* | *'"name":"silent"'*)
            echo "$line" >> "$traces/calls"
            say "$id" 'fine'
            if [ "$mode" = growing ]; then
                touch "$traces/more"
                echo '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'
            fi
            ;;
        *) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"unknown tool"}}\n' "$id" ;;
        esac
        ;;
    esac
done
if [ "$mode" = stubborn ]; then
    while :; do sleep 1; done
fi
