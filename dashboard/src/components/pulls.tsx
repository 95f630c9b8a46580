import { signal, useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { modelEndpoints, type Pull } from '../api/models.ts';
import { client } from '../app/session.ts';
import { Badge, type Tone } from './badge.tsx';
import { Button } from './button.tsx';
import { ErrorNotice } from './notice.tsx';
import { useResource } from './use-resource.ts';
import { formatBytes, formatShare } from '../format/numbers.ts';
import { formatDuration } from '../format/time.ts';
import { visibleText } from '../format/visible-text.ts';
import { useAction } from './use-action.ts';
import { messages } from '../messages/index.ts';
import './pulls.css';

const text = messages.models;

const models = modelEndpoints(client);
const POLL_INTERVAL_MS = 500;
const TONES: Readonly<Record<Pull['state'], Tone>> = {
  running: 'accent',
  done: 'good',
  failed: 'bad',
  cancelled: 'none',
};

/** Incremented when a pull starts, so that the list reloads immediately. */
export const pullsChanged = signal(0);

/** Running and finished pulls, with their progress. */
export function Pulls({ canChange, onEnded }: { canChange: boolean; onEnded: (pulls: readonly Pull[]) => void }) {
  const isPolling = useSignal(false);
  const pulls = useResource(models.pulls, [pullsChanged.value], { everyMs: isPolling.value ? POLL_INTERVAL_MS : null });
  const { failure, act } = useAction();
  const list = pulls.data.value ?? [];
  const hasRunning = list.some(({ state }) => state === 'running');
  const ended = list.filter(({ state }) => state !== 'running').map(({ id }) => id);
  const endedIds = pulls.data.value === null ? null : ended.join(' ');
  const lastEndedIds = useRef(endedIds);
  useEffect(() => void (isPolling.value = hasRunning), [hasRunning]);
  useEffect(() => {
    // A small model can be complete before the list shows it as running.
    if (lastEndedIds.current !== null && lastEndedIds.current !== endedIds) onEnded(list);
    lastEndedIds.current = endedIds;
  }, [endedIds]);
  if (list.length === 0) return null;
  return (
    <section class="stack" aria-label={text.pulls}>
      <h2>{text.pulls}</h2>
      {failure.value !== null && <ErrorNotice error={failure.value} />}
      <ul class="pulls">
        {list.map((pull) => (
          <li key={pull.id} class="card">
            <div class="row">
              <strong>{visibleText(pull.reference)}</strong>
              <Badge tone={TONES[pull.state]}>{text.pullStates[pull.state]}</Badge>
              <span class="small soft num">{describe(pull)}</span>
              {canChange && pull.state === 'running' && (
                <Button
                  isSmall
                  kind="danger"
                  label={text.cancelPull(visibleText(pull.reference))}
                  onClick={() => void act(pull.id, () => models.cancelPull(pull.id)).then(pulls.reload)}
                >
                  {text.cancel}
                </Button>
              )}
            </div>
            {pull.state === 'running' && (
              <progress
                aria-label={text.pulling(visibleText(pull.reference))}
                {...(pull.total_bytes === null ? {} : { value: pull.done_bytes, max: Math.max(1, pull.total_bytes) })}
              />
            )}
            {pull.error !== null && <p class="small bad">{visibleText(pull.error.message)}</p>}
          </li>
        ))}
      </ul>
    </section>
  );
}

/** The work on a model in words. */
function phaseOf(phase: string): string {
  const phases: Readonly<Record<string, string>> = text.phases;
  return Object.hasOwn(phases, phase) ? phases[phase]! : visibleText(phase);
}

/** Describes the progress, speed and remaining time of a pull. */
export function describe({
  state,
  phase,
  done_bytes: doneBytes,
  total_bytes: totalBytes,
  bytes_per_second: bytesPerSecond,
}: Pull): string {
  if (state !== 'running') return doneBytes > 0 ? formatBytes(doneBytes) : '';
  const parts = phase === null ? [] : [phaseOf(phase)];
  parts.push(
    totalBytes === null
      ? formatBytes(doneBytes)
      : text.progress(formatBytes(doneBytes), formatBytes(totalBytes), formatShare(doneBytes / totalBytes)),
  );
  if (bytesPerSecond !== null && bytesPerSecond !== 0) {
    parts.push(`${formatBytes(bytesPerSecond)}/s`);
    if (totalBytes !== null) {
      parts.push(text.timeLeft(formatDuration(((totalBytes - doneBytes) / bytesPerSecond) * 1000)));
    }
  }
  return parts.join(' · ');
}
