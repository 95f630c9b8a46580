import { learningOf } from '../../api/learning.ts';
import { client } from '../../app/session.ts';
import { Dialog } from '../../components/dialog.tsx';
import { Loading } from '../../components/loading.tsx';
import { ErrorNotice } from '../../components/notice.tsx';
import { useResource } from '../../components/use-resource.ts';
import { formatCount } from '../../format/numbers.ts';
import { messages } from '../../messages/index.ts';
import { LessonList } from './lessons.tsx';

const text = messages.learning.versions;
const MAX_ANSWERS = 100;

/** The answers that a version was trained on. */
export function VersionAnswers({ model, version, onClose }: { model: string; version: number; onClose: () => void }) {
  const answers = useResource(
    (signal) => learningOf(client).lessons({ model, version, limit: MAX_ANSWERS }, signal),
    [model, version],
  );
  const data = answers.data.value;
  return (
    <Dialog title={text.showAnswers(formatCount(version))} isWide onClose={onClose}>
      {answers.error.value !== null && <ErrorNotice error={answers.error.value} onRetry={answers.reload} />}
      {data === null && answers.error.value === null && <Loading label={text.loadingAnswers} />}
      {data?.lessons.length === 0 && <p class="soft">{text.noAnswers}</p>}
      {data?.isComplete === false && <p class="soft small">{text.newestOnly}</p>}
      {data !== null && <LessonList lessons={data.lessons} />}
    </Dialog>
  );
}
