import type { View } from '../../app/views.ts';
import { messages } from '../../messages/index.ts';

export const view: View = {
  id: 'memory',
  title: messages.memory.title,
  icon: 'memory',
  order: 4,
  isOpenTo: ({ read }) => read,
  load: () => import('./index.tsx'),
};
