import { useRef } from 'preact/hooks';
import { Button } from '../../components/button.tsx';
import { Field } from '../../components/field.tsx';
import { TextBlock } from '../../components/text-block.tsx';
import { visibleText } from '../../format/visible-text.ts';
import { messages } from '../../messages/index.ts';
import type { ToolCall } from './types.ts';

const text = messages.chat.tools;

/** The tool calls of an answer, with their results or, if `onResults` is set, a form for them. */
export function ToolCalls({
  calls,
  onResults,
}: {
  calls: readonly ToolCall[];
  /** Null: results cannot be sent now. */
  onResults: ((results: ReadonlyMap<string, string>) => void) | null;
}) {
  const form = useRef<HTMLFormElement>(null);
  const pending = calls.filter(({ result }) => result === null);
  function send(event: Event): void {
    event.preventDefault();
    const fields = new FormData(form.current!);
    onResults!(new Map(pending.map(({ id }) => [id, String(fields.get(id))])));
  }
  return (
    <div class="tool-calls">
      {calls.map(({ id, name, arguments: json, result }) => (
        <div key={id} class="tool-call">
          <details open>
            <summary>{text.call(visibleText(name))}</summary>
            <TextBlock text={prettyJson(json)} label={text.arguments(visibleText(name))} />
          </details>
          {result !== null && (
            <details open>
              <summary>{text.result(visibleText(name))}</summary>
              <TextBlock text={prettyJson(result)} label={text.result(visibleText(name))} />
            </details>
          )}
        </div>
      ))}
      {onResults !== null && pending.length > 0 && (
        <form class="stack" ref={form} onSubmit={send}>
          {pending.map((call) => (
            <Field key={call.id} label={text.result(visibleText(call.name))} hint={text.resultHint}>
              {(id) => <textarea id={id} name={call.id} class="input mono" rows={2} required />}
            </Field>
          ))}
          <div class="row">
            <Button isSmall kind="primary" type="submit">
              {text.send(pending.length)}
            </Button>
          </div>
        </form>
      )}
    </div>
  );
}

/** Indents JSON; incomplete JSON and other text stay as they are. */
function prettyJson(json: string): string {
  try {
    return JSON.stringify(JSON.parse(json), null, 2);
  } catch {
    return json;
  }
}
