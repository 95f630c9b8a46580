import { signal, useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { modelEndpoints, type Pull } from '../../api/models.ts';
import { client } from '../../app/session.ts';
import { Badge, type Tone } from '../../components/badge.tsx';
import { Button } from '../../components/button.tsx';
import { ErrorNotice } from '../../components/notice.tsx';
import { useResource } from '../../components/use-resource.ts';
import { formatBytes, formatShare } from '../../format/numbers.ts';
import { formatDuration } from '../../format/time.ts';
import { visibleText } from '../../format/visible-text.ts';
import { useAction } from './use-action.ts';

const models = modelEndpoints(client);
const RUNNING_MS = 500;
const TONES: Readonly<Record<Pull['state'], Tone>> = {
  running: 'accent',
  done: 'good',
  failed: 'bad',
  cancelled: 'none',
};

/** Counts what was begun, so that it is looked for at once. */
export const pullsChanged = signal(0);

/** Models on their way, with how far they are. */
export function Pulls({ canChange, onEnded }: { canChange: boolean; onEnded: () => void }) {
  const isRunning = useSignal(false);
  const pulls = useResource(models.pulls, [pullsChanged.value], { everyMs: isRunning.value ? RUNNING_MS : null });
  const { failure, act } = useAction();
  const list = pulls.data.value ?? [];
  const running = list.some(({ state }) => state === 'running');
  useEffect(() => {
    if (isRunning.value && !running) onEnded();
    isRunning.value = running;
  }, [running]);
  if (list.length === 0) return null;
  return (
    <section class="stack" aria-label="Pulls">
      <h2>Pulls</h2>
      {failure.value !== null && <ErrorNotice error={failure.value} />}
      <ul class="pulls">
        {list.map((pull) => (
          <li key={pull.id} class="card">
            <div class="row">
              <strong>{visibleText(pull.reference)}</strong>
              <Badge tone={TONES[pull.state]}>{pull.state}</Badge>
              <span class="small soft num">{describe(pull)}</span>
              {canChange && pull.state === 'running' && (
                <Button
                  isSmall
                  kind="danger"
                  label={`Cancel ${visibleText(pull.reference)}`}
                  onClick={() => void act(pull.id, () => models.cancelPull(pull.id)).then(pulls.reload)}
                >
                  Cancel
                </Button>
              )}
            </div>
            {pull.state === 'running' && (
              <progress
                aria-label={`Pull of ${visibleText(pull.reference)}`}
                {...(pull.total_bytes === null ? {} : { value: pull.done_bytes, max: Math.max(1, pull.total_bytes) })}
              />
            )}
            {pull.error !== null && <p class="small bad">{visibleText(pull.error)}</p>}
          </li>
        ))}
      </ul>
    </section>
  );
}

/** How far, how fast, and how long still. */
export function describe({
  state,
  phase,
  done_bytes: done,
  total_bytes: total,
  bytes_per_second: speed,
}: Pull): string {
  if (state !== 'running') return done > 0 ? formatBytes(done) : '';
  const far =
    total === null ? formatBytes(done) : `${formatBytes(done)} of ${formatBytes(total)} (${formatShare(done / total)})`;
  const fast = speed === null || speed === 0 ? [] : [`${formatBytes(speed)}/s`];
  const left =
    total === null || speed === null || speed === 0 ? [] : [`${formatDuration(((total - done) / speed) * 1000)} left`];
  return [...(phase === null ? [] : [phase]), far, ...fast, ...left].join(' · ');
}
