import { useSignal } from '@preact/signals';
import { learningOf, type LearningStatus, type Loop, type Version } from '../../api/learning.ts';
import { permissions, client } from '../../app/session.ts';
import { Badge } from '../../components/badge.tsx';
import { Button } from '../../components/button.tsx';
import { Confirm } from '../../components/confirm.tsx';
import { EmptyState } from '../../components/empty-state.tsx';
import { ListTable } from '../../components/list-table.tsx';
import { Moment } from '../../components/moment.tsx';
import { ErrorNotice } from '../../components/notice.tsx';
import { showToast } from '../../components/toast.tsx';
import { useResource } from '../../components/use-resource.ts';
import { formatCount } from '../../format/numbers.ts';
import { visibleText } from '../../format/visible-text.ts';
import { DiffDialog } from './diff-dialog.tsx';

const learning = learningOf(client);
type Model = LearningStatus['models'][number];

/** All learned versions of each model, including rejected ones. */
export function Versions({ status, onChange }: { status: LearningStatus; onChange: () => void }) {
  if (status.models.length === 0) return <EmptyState icon="models" title="No models loaded" />;
  return (
    <div class="stack">
      {status.models.map((model) => (
        <ModelVersions
          key={model.model}
          model={model}
          run={status.runs.find((run) => run.model === model.model && run.state === 'running')}
          onChange={onChange}
        />
      ))}
    </div>
  );
}

function ModelVersions(props: { model: Model; run: LearningStatus['runs'][number] | undefined; onChange: () => void }) {
  const { model, run, onChange } = props;
  const id = model.model;
  const activeVersion = model.serves?.version ?? 0;
  const history = useResource((signal) => learning.history(id, signal), [id, model.newestVersion, activeVersion]);
  const error = useSignal<unknown>(null);
  const versionToCompare = useSignal<Version | null>(null);
  /** 0: the base model. */
  const versionToActivate = useSignal<number | null>(null);
  const versions = history.data.value?.versions ?? [];

  async function start(loop: Loop): Promise<void> {
    try {
      error.value = null;
      await learning.run(id, loop);
      showToast(`Started the ${loop} loop.`);
    } catch (failure) {
      error.value = failure;
    }
    onChange();
  }

  async function stop(): Promise<void> {
    try {
      error.value = null;
      await learning.cancel(id);
    } catch (failure) {
      error.value = failure;
    }
    onChange();
  }

  return (
    <section class="card stack" aria-label={`Versions of ${visibleText(id)}`}>
      <div class="row learning-head">
        <h2>{visibleText(id)}</h2>
        <Badge tone={activeVersion === 0 ? 'none' : 'good'}>
          {activeVersion === 0 ? 'base model' : `version ${activeVersion} active`}
        </Badge>
        {model.isBackgroundDue && <Badge tone="accent">background loop due</Badge>}
        {model.isDeepDue && <Badge tone="accent">deep loop due</Badge>}
        {run !== undefined && <Badge tone="warn">{visibleText(run.loop)} loop running</Badge>}
        {permissions.value.admin && (
          <span class="row">
            {run === undefined ? (
              <>
                <Button isSmall icon="play" onClick={() => void start('background')}>
                  Run background loop
                </Button>
                <Button isSmall icon="play" onClick={() => void start('deep')}>
                  Run deep loop
                </Button>
              </>
            ) : (
              <Button isSmall icon="stop" onClick={() => void stop()}>
                Stop loop
              </Button>
            )}
            {activeVersion !== 0 && (
              <Button isSmall icon="undo" onClick={() => (versionToActivate.value = 0)}>
                Revert to base model
              </Button>
            )}
          </span>
        )}
      </div>
      {error.value !== null && <ErrorNotice error={error.value} />}
      {history.error.value !== null && <ErrorNotice error={history.error.value} onRetry={history.reload} />}
      {history.data.value !== null && versions.length === 0 && (
        <p class="soft">
          No versions yet. Rate answers in the chat: the background loop learns from them once there are enough, and the
          deep loop revisits all of them once a week.
        </p>
      )}
      {versions.length > 0 && (
        <ListTable label="All versions" heads={['Version', 'Created', 'Loop', 'Requests:', 'Reason']}>
          {versions.map((version) => (
            <tr key={version.version} data-version={version.version}>
              <td>
                {version.version} <VersionState version={version} activeVersion={activeVersion} />
              </td>
              <td>
                <Moment ms={version.createdMs} />
              </td>
              <td>{visibleText(version.loop)}</td>
              <td class="end">{formatCount(version.numLearnedFrom)}</td>
              <td class="learning-why">{visibleText(version.reason)}</td>
              <td>
                <span class="row">
                  {version.parent !== null && version.parent > 0 && (
                    <Button isSmall onClick={() => (versionToCompare.value = version)}>
                      Compare
                    </Button>
                  )}
                  {permissions.value.admin && version.isAccepted && version.version !== activeVersion && (
                    <Button isSmall onClick={() => (versionToActivate.value = version.version)}>
                      Activate
                    </Button>
                  )}
                </span>
              </td>
            </tr>
          ))}
        </ListTable>
      )}
      {versionToCompare.value !== null && (
        <DiffDialog
          model={id}
          from={versionToCompare.value.parent!}
          to={versionToCompare.value.version}
          onClose={() => (versionToCompare.value = null)}
        />
      )}
      {versionToActivate.value !== null && (
        <Confirm
          title={
            versionToActivate.value === 0 ? 'Revert to the base model?' : `Activate version ${versionToActivate.value}?`
          }
          action={versionToActivate.value === 0 ? 'Revert' : 'Activate'}
          onConfirm={async () => {
            await learning.rollback(id, versionToActivate.value!);
            onChange();
          }}
          onClose={() => (versionToActivate.value = null)}
        >
          Changes by the instant loop since then are discarded. The version history is kept, so you can switch back.
        </Confirm>
      )}
    </section>
  );
}

function VersionState(props: { version: Version; activeVersion: number }) {
  const { version, isAccepted } = props.version;
  if (version === props.activeVersion) return <Badge tone="good">active</Badge>;
  return isAccepted ? null : <Badge tone="bad">rejected</Badge>;
}
