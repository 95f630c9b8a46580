import { RuvLLMError } from '../../core/errors.ts';
import { integerArgument, textArgument } from './arguments.ts';
import { createScope } from './scope.ts';
import type { Scope } from './scope.ts';
import { strftime } from './strftime.ts';
import { toText } from './to-text.ts';
import { Namespace, templateError, typeName } from './values.ts';
import type { Callable, Key, RenderContext, Value } from './values.ts';

export interface TemplateClock {
  /** Milliseconds since 1970. */
  now(): number;
  /** Minutes east of UTC at that moment. */
  utcOffsetMinutes(nowMs: number): number;
}

function createRange({ budget }: RenderContext): Callable {
  return (args) => {
    const hasStart = args.positional.length > 1;
    const start = hasStart ? integerArgument(args, 0, 'start', 0) : 0;
    const stop = integerArgument(args, hasStart ? 1 : 0, 'stop', 0);
    const step = integerArgument(args, 2, 'step', 1);
    if (step === 0) throw templateError('range() step is 0');
    const length = Math.max(0, Math.ceil((stop - start) / step));
    budget.items(length);
    return Array.from({ length }, (_, i) => start + i * step);
  };
}

const namespace: Callable = ({ positional, named }) => {
  const source = positional[0] ?? new Map<Key, Value>();
  if (!(source instanceof Map)) throw templateError(`namespace() takes a mapping, got ${typeName(source)}`);
  return new Namespace(new Map<Key, Value>([...source, ...named]));
};

const dict: Callable = ({ positional, named }) => {
  const source = positional[0];
  return new Map<Key, Value>([...(source instanceof Map ? source : []), ...named]);
};

/** The names every chat template may use. */
export function createGlobals(context: RenderContext, clock: TemplateClock): Scope {
  const { budget } = context;
  return createScope(null, [
    ['true', true],
    ['True', true],
    ['false', false],
    ['False', false],
    ['none', null],
    ['None', null],
    ['range', createRange(context)],
    ['namespace', namespace],
    ['dict', dict],
    [
      'raise_exception',
      (args) => {
        const raised = toText(budget, args.positional[0]).slice(0, 2_000);
        throw new RuvLLMError('template_error', `chat template refused the conversation: ${raised}`, {
          data: { raised },
        });
      },
    ],
    [
      'strftime_now',
      (args) => {
        const nowMs = clock.now();
        const format = textArgument(args, 0, 'format');
        // The longest directive result, a month's name, has under 10 characters for 2.
        budget.text(format.length * 5);
        return strftime(new Date(nowMs + clock.utcOffsetMinutes(nowMs) * 60_000), format);
      },
    ],
  ]);
}
