import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { Button } from '../../components/button.tsx';
import { Dialog } from '../../components/dialog.tsx';
import { Loading } from '../../components/loading.tsx';
import { ErrorNotice } from '../../components/notice.tsx';
import { useAction } from '../../components/use-action.ts';
import { useResource } from '../../components/use-resource.ts';
import { formatBytes } from '../../format/numbers.ts';
import { messages } from '../../messages/index.ts';
import {
  MAX_TAB_BYTES,
  offerTab,
  removeFromBrowser,
  runInTab,
  type TabOffer,
  type TabWork,
  tabWork,
} from './tab-engine.ts';
import { isInTab, leaveTab, tabFailure, tabModel } from './tab-state.ts';

const text = messages.chat.tab;

export interface TabDialogProps {
  readonly model: string;
  /** The name of the model for people. */
  readonly label: string;
  readonly onClose: () => void;
}

/** Downloads a model into this browser and runs it in the tab. */
export function TabDialog({ model, label, onClose }: TabDialogProps) {
  const offer = useResource((signal) => offerTab(model, signal), [model]);
  const { failure, act } = useAction();
  const wasBusy = useSignal(false);
  const work = tabWork.value?.id === model ? tabWork.value : null;
  const isBusy = work !== null || isInTab(model);
  // A cancelled download leaves a part, and a finished one the model: both are offered then.
  useEffect(() => {
    if (wasBusy.value && !isBusy) offer.reload();
    wasBusy.value = isBusy;
  }, [isBusy]);
  const error = failure.value ?? (tabFailure.value || null) ?? (isInTab(model) ? null : offer.error.value);
  const data = offer.data.value;
  return (
    <Dialog title={text.title(label)} onClose={onClose}>
      <div class="stack">
        {error !== null && <ErrorNotice error={error} />}
        {isInTab(model) ? (
          <Running label={label} onStop={() => void leaveTab()} />
        ) : work !== null ? (
          <Working work={work} label={label} />
        ) : data !== null ? (
          <Offer
            offer={data}
            onStart={() => void runInTab(model, data.file)}
            onRemove={() => void act('remove', () => removeFromBrowser(model)).then(offer.reload)}
          />
        ) : (
          error === null && <Loading label={text.preparing} />
        )}
      </div>
    </Dialog>
  );
}

function Offer({
  offer: { file, stored },
  onStart,
  onRemove,
}: {
  offer: TabOffer;
  onStart: () => void;
  onRemove: () => void;
}) {
  // prettier-ignore
  const isTooLarge = file.sizeBytes > MAX_TAB_BYTES;
  return (
    <>
      <p>{text.about(formatBytes(file.sizeBytes))}</p>
      <p class="soft">{text.without}</p>
      {stored !== 'no' && <p>{stored === 'yes' ? text.isStored : text.isPartlyStored}</p>}
      {isTooLarge && <ErrorNotice error={text.tooLarge(formatBytes(file.sizeBytes), formatBytes(MAX_TAB_BYTES))} />}
      <div class="row end">
        {stored !== 'no' && (
          <Button kind="danger" onClick={onRemove}>
            {text.remove}
          </Button>
        )}
        <Button kind="primary" isDisabled={isTooLarge} onClick={onStart}>
          {stored === 'yes' ? text.startStored : text.start}
        </Button>
      </div>
    </>
  );
}

function Working({ work: { phase, doneBytes, totalBytes, cancel }, label }: { work: TabWork; label: string }) {
  return (
    <>
      <p class="num">{text.progress(text.phases[phase], formatBytes(doneBytes), formatBytes(totalBytes))}</p>
      <progress
        class="tab-progress"
        aria-label={text.progressLabel(label)}
        value={doneBytes}
        max={Math.max(1, totalBytes)}
      />
      <div class="row end">
        <Button onClick={cancel}>{text.cancel}</Button>
      </div>
    </>
  );
}

function Running({ label, onStop }: { label: string; onStop: () => void }) {
  return (
    <>
      <p role="status">{text.ready(label, tabModel.value!.numThreads)}</p>
      <div class="row end">
        <Button onClick={onStop}>{text.stop}</Button>
      </div>
    </>
  );
}
