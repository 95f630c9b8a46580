import type { ToolDefinition } from '../../../src/runtime/chat-options.ts';
import type { CheckedAnswer } from '../../../src/runtime/reflection/types.ts';

/** A request that one call of one tool answers. */
export interface ToolTask {
  readonly text: string;
  readonly tool: string;
  /** Values that the right call has; no attempt is told. */
  readonly values: Readonly<Record<string, string | number>>;
}

const tool = (name: string, description: string, properties: Readonly<Record<string, object>>): ToolDefinition => ({
  type: 'function',
  function: {
    name,
    description,
    parameters: { type: 'object', properties, required: Object.keys(properties), additionalProperties: false },
  },
});

const text = { type: 'string', maxLength: 60 } as const;

export const TOOLS: readonly ToolDefinition[] = [
  tool('get_weather', 'weather forecast of a city', { city: text }),
  tool('set_timer', 'starts a kitchen timer', { minutes: { type: 'integer', minimum: 1, maximum: 600 } }),
  tool('send_message', 'sends a text message', { recipient: text, message: text }),
  tool('play_music', 'plays songs of an artist', { artist: text }),
];

const CITIES = [
  'Lisbon',
  'Nairobi',
  'Oslo',
  'Toronto',
  'Hanoi',
  'Lima',
  'Prague',
  'Dublin',
  'Seoul',
  'Cairo',
  'Quito',
  'Vienna',
];
const MINUTES = [3, 7, 10, 12, 15, 20, 25, 40, 45, 50, 55, 90];
const PEOPLE = ['Anna', 'Tom', 'Maria', 'Ken', 'Lucy', 'Omar', 'Eva', 'Ben', 'Nina', 'Paul', 'Ida', 'Max'];
const ARTISTS = [
  'Nina Simone',
  'Queen',
  'Miles Davis',
  'Abba',
  'Bach',
  'Adele',
  'Prince',
  'Sting',
  'Björk',
  'Mozart',
  'Enya',
  'Santana',
];

/** In turns, so that any part of them has every tool. */
export const TOOL_TASKS: readonly ToolTask[] = CITIES.flatMap((city, i) => [
  { text: `What will the weather be like in ${city} tomorrow?`, tool: 'get_weather', values: { city } },
  {
    text: `Start a timer of ${MINUTES[i]!} minutes for the pasta.`,
    tool: 'set_timer',
    values: { minutes: MINUTES[i]! },
  },
  { text: `Tell ${PEOPLE[i]!} that I am late.`, tool: 'send_message', values: { recipient: PEOPLE[i]! } },
  { text: `I would like to hear something by ${ARTISTS[i]!}.`, tool: 'play_music', values: { artist: ARTISTS[i]! } },
]);

const argumentsOf = (answer: CheckedAnswer): Readonly<Record<string, unknown>> => {
  try {
    return JSON.parse(answer.toolCalls[0]?.arguments ?? '{}') as Record<string, unknown>;
  } catch {
    return {};
  }
};

/** The rule of a caller that knows the request and not the right call: a call is needed, with names and numbers of the request. */
export function checkCall(request: string): (answer: CheckedAnswer) => string | null {
  return (answer) => {
    const [call] = answer.toolCalls;
    if (call === undefined)
      return 'it has no tool call; answer with nothing but {"name": "<tool>", "arguments": {<arguments>}}';
    for (const [name, value] of Object.entries(argumentsOf(answer))) {
      // Every text contains the empty one.
      if (value !== '' && (name === 'message' || request.toLowerCase().includes(String(value).toLowerCase()))) continue;
      return `the call of ${call.name}: "${name}" must be taken from the request, not ${JSON.stringify(value)}`;
    }
    return null;
  };
}

/** Whether the call is the right one, with the right values. */
export function isRightCall(answer: CheckedAnswer, { tool: name, values }: ToolTask): boolean {
  const given = argumentsOf(answer);
  return (
    answer.toolCalls.length === 1 &&
    answer.toolCalls[0]!.name === name &&
    Object.entries(values).every(([key, value]) => String(given[key]).toLowerCase() === String(value).toLowerCase())
  );
}
