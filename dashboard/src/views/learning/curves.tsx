import { learningOf, type LearningSeries, type VersionPoint } from '../../api/learning.ts';
import { client } from '../../app/session.ts';
import { EmptyState } from '../../components/empty-state.tsx';
import { LineChart } from '../../components/line-chart.tsx';
import { Loading } from '../../components/loading.tsx';
import { ErrorNotice } from '../../components/notice.tsx';
import { useResource } from '../../components/use-resource.ts';
import { formatCount } from '../../format/numbers.ts';
import { visibleText } from '../../format/visible-text.ts';

/** Loss, forgetting and router gain by version, and the feedback over time. */
export function Curves() {
  const series = useResource((signal) => learningOf(client).series(signal));
  const data = series.data.value;
  if (series.error.value !== null) return <ErrorNotice error={series.error.value} onRetry={series.reload} />;
  if (data === null) return <Loading label="Loading curves" />;
  const adapters = data.adapters.filter(({ points }) => points.length > 0);
  const isEmpty = adapters.length === 0 && data.router.points.length === 0 && data.feedback.length === 0;
  if (isEmpty) {
    return (
      <EmptyState icon="learning" title="No data yet">
        <p>Curves appear after the first feedback and the first learning loop.</p>
      </EmptyState>
    );
  }
  return (
    <div class="learning-charts">
      {adapters.map(({ model, points }) => (
        <LossChart key={model} model={model} points={points} />
      ))}
      {adapters.map(({ model, points }) => (
        <ForgettingChart key={model} model={model} points={points} />
      ))}
      {data.router.points.length > 0 && <RouterChart points={data.router.points} />}
      {data.feedback.length > 0 && <FeedbackChart feedback={data.feedback} />}
    </div>
  );
}

const versionsOf = (points: readonly VersionPoint[]): readonly number[] => points.map(({ version }) => version);

function LossChart({ model, points }: { model: string; points: readonly VersionPoint[] }) {
  const title = `Held-out loss of ${visibleText(model)}`;
  return (
    <section class="card" aria-label={title}>
      <h2>{title}</h2>
      <LineChart
        label={`${title}, before and after each version`}
        x={versionsOf(points)}
        isTime={false}
        xLabel="version"
        range={[null, null]}
        lines={[
          { label: 'before', values: points.map(({ lossBefore }) => lossBefore), isDashed: true },
          { label: 'after', values: points.map(({ lossAfter }) => lossAfter) },
        ]}
      />
    </section>
  );
}

function ForgettingChart({ model, points }: { model: string; points: readonly VersionPoint[] }) {
  const title = `Forgetting of ${visibleText(model)}`;
  return (
    <section class="card" aria-label={title}>
      <h2>{title}</h2>
      <LineChart
        label={`${title}: loss increase on accepted answers with each version`}
        x={versionsOf(points)}
        isTime={false}
        xLabel="version"
        range={[null, null]}
        lines={[{ label: 'loss increase', values: points.map(({ forgetting }) => forgetting) }]}
      />
    </section>
  );
}

function RouterChart({ points }: { points: readonly VersionPoint[] }) {
  return (
    <section class="card" aria-label="Router gain">
      <h2>Router gain</h2>
      <LineChart
        label="Reward gain of each router version on held-out requests, with 95 % confidence bounds"
        x={versionsOf(points)}
        isTime={false}
        xLabel="version"
        range={[null, null]}
        lines={[
          { label: 'gain', values: points.map(({ gain }) => gain) },
          {
            label: 'lower bound',
            values: points.map(({ gainLow }) => gainLow),
            isDashed: true,
            colour: '--line-strong',
          },
          {
            label: 'upper bound',
            values: points.map(({ gainHigh }) => gainHigh),
            isDashed: true,
            colour: '--line-strong',
          },
        ]}
      />
    </section>
  );
}

function FeedbackChart({ feedback }: { feedback: LearningSeries['feedback'] }) {
  return (
    <section class="card" aria-label="Feedback">
      <h2>Feedback</h2>
      <LineChart
        label="Number of answers rated good, rated bad and corrected"
        x={feedback.map(({ startMs }) => startMs / 1000)}
        format={formatCount}
        isCount
        lines={[
          { label: 'good', values: feedback.map(({ numUp }) => numUp) },
          { label: 'bad', values: feedback.map(({ numDown }) => numDown) },
          { label: 'corrected', values: feedback.map(({ numCorrected }) => numCorrected) },
        ]}
      />
    </section>
  );
}
