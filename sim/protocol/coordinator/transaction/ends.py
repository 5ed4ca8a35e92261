"""EndTxn by the state of the transaction.

With transaction version 2 every end bumps the epoch, so a retry has an epoch that is one behind;
before, it is recognised by the state alone.

Source: ``TransactionCoordinator.endTransaction`` and ``endTransactionWithTV1``; KIP-890.
"""

from sim.error_codes import ErrorCode
from sim.protocol.coordinator.transaction.records import TransactionState
from sim.protocol.coordinator.transaction.state import LARGEST_EPOCH, Transaction
from sim.protocol.messages.transaction import EndTxnRequest

Verdict = ErrorCode | TransactionState
"""NONE: it has been done before. Another error: it is refused. A state: the next one."""

_S = TransactionState
_COMPLETE = (_S.COMPLETE_COMMIT, _S.COMPLETE_ABORT)
_PREPARED = (_S.PREPARE_COMMIT, _S.PREPARE_ABORT)
_COMMITS = (_S.PREPARE_COMMIT, _S.COMPLETE_COMMIT)


def end_verdict(transaction: Transaction, request: EndTxnRequest, version: int) -> Verdict:
    """Verdict on the request."""
    if version >= 2:
        return _with_bumps(transaction, request)
    return _without_bumps(transaction, request)


def _with_bumps(transaction: Transaction, request: EndTxnRequest) -> Verdict:
    """Version 2; a pending change is waited for first, as it may be the change of the id."""
    if transaction.pending is not None:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    epoch, stored = request.producer_epoch, transaction.producer_epoch
    after_rotation = (
        transaction.previous_producer_id == request.producer_id
        and epoch == LARGEST_EPOCH - 1
        and stored == 0
    )
    if transaction.producer_id != request.producer_id and not after_rotation:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    state = transaction.state
    is_retry = after_rotation or stored == epoch + 1
    valid = is_retry if state in _PREPARED else stored == epoch
    if not valid and not (is_retry and state in _COMPLETE):
        return ErrorCode.PRODUCER_FENCED
    if state is _S.ONGOING:
        return _S.PREPARE_COMMIT if request.committed else _S.PREPARE_ABORT
    if is_retry or state in _PREPARED:
        return _of_retry(state, committed=request.committed)
    # A transaction without a partition: nothing to commit, but an abort still bumps the epoch.
    return ErrorCode.INVALID_TXN_STATE if request.committed else _S.PREPARE_ABORT


def _without_bumps(transaction: Transaction, request: EndTxnRequest) -> Verdict:
    if transaction.producer_id != request.producer_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if transaction.producer_epoch != request.producer_epoch:
        return ErrorCode.PRODUCER_FENCED
    if transaction.pending is not None:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    state = transaction.state
    if state is _S.ONGOING:
        return _S.PREPARE_COMMIT if request.committed else _S.PREPARE_ABORT
    if state is _S.EMPTY:
        return ErrorCode.INVALID_TXN_STATE
    return _of_retry(state, committed=request.committed)


def _of_retry(state: TransactionState, *, committed: bool) -> ErrorCode:
    """The same decision again is in progress or done; the other one is an error of the client."""
    if committed != (state in _COMMITS):
        return ErrorCode.INVALID_TXN_STATE
    return ErrorCode.CONCURRENT_TRANSACTIONS if state in _PREPARED else ErrorCode.NONE
