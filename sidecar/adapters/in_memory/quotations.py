"""Removes what reports, disputes and file activity say of a purged memory, and what they quote of it."""

import json
from dataclasses import replace
from typing import Final

from sidecar.adapters.in_memory.tables import Tables
from sidecar.domain.disputes import Dispute
from sidecar.domain.exchange import FileRecord
from sidecar.domain.memory import Memory
from sidecar.domain.validation import ValidationEvent

_REMOVED: Final = "[removed]"


def delete_reports(tables: Tables, memory: Memory) -> None:
    """Delete a memory's own reports and disputes, and the texts of its owner that quote it."""
    tables.types_before.pop(memory.key, None)
    tables.standing_rules.pop(memory.key, None)
    tables.multiplier_bases.pop((memory.owner, memory.id), None)
    tables.reports = [
        (owner, _without_quotation(event, memory) if owner == memory.owner else event)
        for owner, event in tables.reports
        if event.memory_id != memory.id
    ]
    tables.disputes = {
        number: (owner, _undisputed(dispute, memory) if owner == memory.owner else dispute)
        for number, (owner, dispute) in tables.disputes.items()
        if dispute.memory_id != memory.id
    }
    tables.files = [
        (owner, _unmentioned(file, memory) if owner == memory.owner else file) for owner, file in tables.files
    ]


def _without_quotation(event: ValidationEvent, memory: Memory) -> ValidationEvent:
    context = "" if memory.content in event.context else event.context
    error = "" if memory.content in event.error else event.error
    return replace(event, context=context, error=error)


def _undisputed(dispute: Dispute, memory: Memory) -> Dispute:
    reason = _REMOVED if memory.content in dispute.reason else dispute.reason
    evidence = "" if memory.content in dispute.evidence else dispute.evidence
    return replace(dispute, reason=reason, evidence=evidence)


def _unmentioned(file: FileRecord, memory: Memory) -> FileRecord:
    quotation = json.dumps(memory.content, ensure_ascii=False)[1:-1]
    is_quoting = quotation in json.dumps(dict(file.metadata), ensure_ascii=False)
    return replace(file, metadata={}) if is_quoting else file
