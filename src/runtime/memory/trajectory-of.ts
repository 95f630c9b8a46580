import type { ChatMessage } from '../../chat/types.ts';
import { usedSources } from '../../learning/trajectories/used-sources.ts';
import type { NewTrajectory } from '../../learning/trajectories/trajectories.ts';
import { clipText } from '../../memory/common/text-limits.ts';
import type { EmbeddedText } from '../../memory/memory.ts';
import type { QualityEstimate } from '../../memory/schemas/audit.ts';
import { MAX_TRAJECTORY_TEXT } from '../../memory/schemas/text-lengths.ts';
import { isChat, type Prompt } from '../prompt.ts';
import type { RouteChoice } from '../routing/types.ts';
import type { CallOutcome, Recalled, RememberedCall } from './types.ts';

const MAX_TURNS = 256;
const MAX_SOURCES = 64;

interface TrajectoryParts {
  readonly createdMs: number;
  readonly query: string;
  readonly embedded: EmbeddedText | null;
  /** Null: none. */
  readonly estimate: QualityEstimate | null;
}

/** The trajectory of an answered request. */
export function trajectoryOf(
  { requestId, session, user, model, prompt: asked, hasHistory = false, sampling }: RememberedCall,
  { trainingPrompt, sources, texts, candidates }: Recalled,
  { text, isComplete = false, numOutputTokens, generationMs, served = null }: CallOutcome,
  { createdMs, query, embedded, estimate }: TrajectoryParts,
): NewTrajectory {
  const answer = clipText(text, MAX_TRAJECTORY_TEXT).text;
  const shown = sources.slice(0, MAX_SOURCES);
  const { temperature, topP } = served?.choice.sampling ?? sampling ?? { temperature: null, topP: null };
  const used =
    shown.length === 0
      ? []
      : usedSources({ answer: text, asked: wordsOf(asked), texts: shown.map(({ id }) => texts.get(id) ?? '') });
  return {
    requestId,
    sessionId: session,
    userId: user,
    model,
    createdMs,
    query: clipText(query, MAX_TRAJECTORY_TEXT).text,
    prompt: hasHistory ? null : storedPrompt(trainingPrompt),
    answer,
    isComplete: isComplete && answer === text,
    steps: [
      ...(sources.length === 0 ? [] : ['recall']),
      ...(served === null ? [] : [routeStep(served.choice)]),
      'generate',
    ],
    parameters: { propensity: served?.choice.propensity ?? null, temperature, topP },
    ...(served === null ? {} : { route: served.choice.state }),
    ...(shown.length === 0 ? {} : { candidates: [...candidates] }),
    retrieved: shown.map(({ id }, i) => ({ id, isUsed: used[i]! })),
    quality: null,
    ...(estimate === null ? {} : { estimate: estimate.quality }),
    latencyMs: Math.max(0, generationMs),
    numOutputTokens,
    embedding: embedded?.vector ?? null,
    space: embedded?.space ?? null,
  };
}

const routeStep = ({ candidate, why }: RouteChoice): string =>
  clipText(`route to ${candidate.id} (${why.kind}): ${why.detail}`, 1024).text;

/** The prompt's text without recalled texts. */
const wordsOf = (prompt: Prompt): string =>
  typeof prompt === 'string'
    ? prompt
    : isChat(prompt)
      ? (prompt as readonly ChatMessage[]).map(({ content }) => content).join('\n')
      : '';

/** The prompt of a training example; null if it is too long, because half a prompt would be a wrong example. */
function storedPrompt(prompt: Prompt): NewTrajectory['prompt'] {
  if (typeof prompt === 'string') return prompt.length <= MAX_TRAJECTORY_TEXT ? prompt.toWellFormed() : null;
  if (!isChat(prompt)) return null;
  const messages = prompt as readonly ChatMessage[];
  const length = messages.reduce((sum, { content }) => sum + content.length, 0);
  const isPlain = messages.every(
    ({ toolCalls, toolCallId, name, reasoning, images }) => !toolCalls && !toolCallId && !name && !reasoning && !images,
  );
  if (messages.length > MAX_TURNS || length > MAX_TRAJECTORY_TEXT || !isPlain) return null;
  return messages.map(({ role, content }) => ({ role, content: content.toWellFormed() }));
}
