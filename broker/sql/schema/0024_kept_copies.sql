-- When the newest versions of the old slot were copied: it is emptied a while later, not at once (queen.rotate).
alter table queen.rotation add column copied_at timestamptz;
