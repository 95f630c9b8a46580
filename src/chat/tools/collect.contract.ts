import type { CallOutcome, OutputEvent } from './types.ts';

export interface CollectedAnswer {
  content: string;
  reasoning: string;
  calls: { index: number; id: string; name: string; arguments: string; outcome: CallOutcome | 'open' }[];
  /** The order of the parts, with adjacent parts of one kind merged. */
  order: string[];
  error: string | null;
}

export function collect(events: readonly OutputEvent[]): CollectedAnswer {
  const answer: CollectedAnswer = { content: '', reasoning: '', calls: [], order: [], error: null };
  for (const event of events) {
    const kind = 'index' in event ? `call ${event.index}` : event.type;
    if (answer.order.at(-1) !== kind) answer.order.push(kind);
    if (event.type === 'content') answer.content += event.text;
    else if (event.type === 'reasoning') answer.reasoning += event.text;
    else if (event.type === 'error') answer.error = `${event.error.code}: ${event.error.message}`;
    else if (event.type === 'toolCallStart') {
      const { index, id, name } = event;
      answer.calls[index] = { index, id, name, arguments: '', outcome: 'open' };
    } else if (event.type === 'toolCallArguments') answer.calls[event.index]!.arguments += event.text;
    else answer.calls[event.index]!.outcome = event.outcome;
  }
  return answer;
}
